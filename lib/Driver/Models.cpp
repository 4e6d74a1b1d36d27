// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several files in one module: a decoder with its encoder, or after an embedding.

#include "Models.h"

#include "hone/Conversion/Embedding.h"
#include "hone/Conversion/Encoder.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

using namespace mlir;

namespace hone {

LogicalResult readModels(const CompileOptions &options, MLIRContext *context, Models &models) {
  const std::pair<std::string, OwningOpRef<ModuleOp> *> parts[] = {
      {options.input, &models.model},
      {options.encoder.encoder, &models.encoder},
      {options.encoder.crossAttention, &models.crossAttention},
      {options.encoder.embedding, &models.embedding}};
  ReadOptions reading = options.reading;
  auto read = [&](const std::string &file, OwningOpRef<ModuleOp> &model) {
    model = readModel(file, context, reading);
    return success(static_cast<bool>(model));
  };
  if (!options.draft.getFile().empty() && failed(read(options.draft.getFile(), models.draft)))
    return failure();
  for (auto &[file, model] : parts) {
    if (!file.empty() && failed(read(file, *model)))
      return failure();
    if (*model)
      reading.leastOpset = std::max(reading.leastOpset, onnxir::getOpsetVersion(**model, ""));
  }
  for (auto &[file, model] : parts)
    if (*model && onnxir::getOpsetVersion(**model, "") < reading.leastOpset && failed(read(file, *model)))
      return failure();
  return success();
}

FailureOr<std::optional<io::FeatureInfo>> joinModels(const EncoderOptions &options, Models &models) {
  auto get = [](OwningOpRef<ModuleOp> &model) { return model ? *model : ModuleOp(); };
  std::optional<io::FeatureInfo> features;
  if (models.embedding) {
    FailureOr<std::string> input = addEmbedding(*models.model, *models.embedding, get(models.encoder));
    if (failed(input))
      return failure();
    if (!input->empty())
      features = {std::move(*input), options.featureToken.value_or(-1)};
  } else if (models.encoder && failed(addEncoder(*models.model, *models.encoder, get(models.crossAttention)))) {
    return failure();
  }
  return features;
}

} // namespace hone
