// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The network and its file.

#include "speculate/tree_classifier.h"

#include "hone/io/safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hone::speculate {
namespace {

using io::invalid;

constexpr const char *kFormat = "hone tree classifier", *kVersion = "1";

/// The tensors of a file, in the order of the parameters.
std::vector<io::StoredTensor> listTensors() {
  constexpr auto hidden = static_cast<int64_t>(kTreeHidden), features = static_cast<int64_t>(kTreeFeatures);
  return {{"hidden.weight", HONE_F32, {hidden, features}},
          {"hidden.bias", HONE_F32, {hidden}},
          {"output.weight", HONE_F32, {1, hidden}},
          {"output.bias", HONE_F32, {1}}};
}

size_t countElements(const io::StoredTensor &tensor) {
  size_t count = 1;
  for (int64_t size : tensor.shape)
    count *= static_cast<size_t>(size);
  return count;
}

absl::Status checkFormat(const io::SafetensorsReader &file, const std::string &path) {
  auto valueOf = [&](const char *name) {
    auto found = file.metadata().find(name);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (std::string format = valueOf("format"); format != kFormat)
    return invalid(path, ": expected a file of the format '", kFormat, "', but got '", format, "'");
  if (std::string version = valueOf("version"); version != kVersion)
    return invalid(path, ": expected version ", kVersion, " of the format, but got '", version, "'");
  return absl::OkStatus();
}

} // namespace

TreeFeatures featuresOf(const TreeCandidate &candidate) {
  constexpr double least = 1e-30; // below any that is worth a row
  return {std::log(std::max(candidate.joint, least)), candidate.entropy, static_cast<double>(candidate.depth)};
}

absl::StatusOr<TreeClassifier> TreeClassifier::open(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(io::SafetensorsReader file, io::SafetensorsReader::open(path));
  HONE_RETURN_IF_ERROR(checkFormat(file, path));
  std::vector<io::StoredTensor> expected = listTensors();
  for (const io::StoredTensor &tensor : file.tensors())
    if (std::ranges::none_of(expected, [&](const io::StoredTensor &known) { return known.name == tensor.name; }))
      return invalid(path, ": unexpected tensor '", tensor.name, "'");
  Parameters parameters;
  float *next = parameters.data();
  for (const io::StoredTensor &tensor : expected) {
    const io::StoredTensor *found = file.find(tensor.name);
    if (!found)
      return invalid(path, ": expected a tensor '", tensor.name, "', but there is none");
    if (found->dtype != tensor.dtype || found->shape != tensor.shape)
      return invalid(path, ": expected '", tensor.name, "' to be f32 ", io::shapeText(tensor.shape), ", but got ",
                     io::dtypeName(found->dtype), " ", io::shapeText(found->shape));
    size_t count = countElements(tensor);
    std::memcpy(next, file.bytesOf(*found), count * sizeof(float));
    for (size_t i = 0; i < count; ++i)
      if (!std::isfinite(next[i]))
        return invalid(path, ": expected finite numbers in '", tensor.name, "', but element ", i, " is ", next[i]);
    next += count;
  }
  return TreeClassifier(parameters);
}

absl::Status TreeClassifier::write(const std::string &path) const {
  HONE_ASSIGN_OR_RETURN(
      io::SafetensorsWriter file,
      io::SafetensorsWriter::create(path, listTensors(), {{"format", kFormat}, {"version", kVersion}}));
  HONE_RETURN_IF_ERROR(file.append({reinterpret_cast<const char *>(parameters.data()), sizeof(parameters)}));
  return file.commit();
}

double TreeClassifier::scoreOf(const TreeFeatures &features) const {
  const float *weights = parameters.data(), *biases = weights + kTreeHidden * kTreeFeatures,
              *outputs = biases + kTreeHidden;
  double score = outputs[kTreeHidden];
  for (size_t unit = 0; unit < kTreeHidden; ++unit) {
    double sum = biases[unit];
    for (size_t i = 0; i < kTreeFeatures; ++i)
      sum += weights[unit * kTreeFeatures + i] * features[i];
    score += outputs[unit] * std::max(sum, 0.0);
  }
  return score;
}

ClassifierPruner::ClassifierPruner(const TreeClassifier &classifier, double threshold)
    : classifier(classifier), leastScore(std::log(threshold / (1 - threshold))) {}

} // namespace hone::speculate
