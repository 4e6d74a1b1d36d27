// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ModelFolder.h"

#include "Command.h"
#include "Compiler.h"
#include "FlagChecks.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <filesystem>

using namespace mlir;
namespace fs = std::filesystem;

namespace hone {

bool isModelFolder(StringRef path) {
  std::error_code error;
  StringRef name = path.rtrim('/');
  bool isNamedAsFile = llvm::any_of(ArrayRef<StringRef>{".hone", ".onnx", ".mlir", ".mlirbc"},
                                    [&](StringRef end) { return name.ends_with(end); });
  return !isNamedAsFile && fs::is_directory(path.str(), error) &&
         !fs::exists(fs::path(path.str()) / "manifest.json", error);
}

/// Names of the files that end in .onnx.
static std::vector<std::string> listModels(const fs::path &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".onnx")
      names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

LogicalResult findModel(std::string &model) {
  if (!isModelFolder(model))
    return success();
  for (const fs::path &folder : {fs::path(model), fs::path(model) / "onnx"}) {
    std::vector<std::string> names = listModels(folder);
    if (names.empty())
      continue;
    bool hasUsual = llvm::is_contained(names, "model.onnx");
    if (!hasUsual && names.size() > 1)
      return failure(0 != fail("expected one model in the folder '" + folder.string() + "', but it has " +
                               llvm::join(names, ", ") + "; name one of them"));
    model = (folder / (hasUsual ? "model.onnx" : names.front())).string();
    return success();
  }
  return failure(
      0 != fail("no model in the folder '" + model + "'; expected a file that ends in .onnx, there or in 'onnx'"));
}

/// The folder without a slash at the end.
static fs::path normalize(StringRef model) {
  fs::path folder = fs::path(model.str()).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

/// Gives `name`, where it is empty, the file of the folder, if that exists.
static void findFile(const fs::path &folder, StringRef file, std::string &name) {
  std::error_code error;
  if (fs::path found = folder / file.str(); name.empty() && fs::is_regular_file(found, error))
    name = found.string();
}

/// Whether the folder has a decoder that reads embeddings, which becomes that of `compile`, with the encoders of images or else audio that there are.
static bool findEmbedding(const fs::path &folder, CompileOptions &compile) {
  std::string embedding, decoder;
  findFile(folder, "embed_tokens.onnx", embedding);
  findFile(folder, "decoder_model_merged.onnx", decoder);
  if (embedding.empty() || decoder.empty())
    return false;
  compile.input = decoder;
  compile.encoder.embedding = embedding;
  for (StringRef name : {"vision_encoder.onnx", "audio_encoder.onnx"})
    findFile(folder, name, compile.encoder.encoder);
  return true;
}

/// Whether the folder has an encoder and a decoder, which become those of `compile`.
static bool findEncoderAndDecoder(const fs::path &folder, CompileOptions &compile) {
  std::string encoder, decoder, cross;
  findFile(folder, "encoder_model.onnx", encoder);
  findFile(folder, "decoder_model_merged.onnx", decoder);
  if (decoder.empty()) {
    findFile(folder, "decoder_with_past_model.onnx", decoder);
    findFile(folder, "decoder_model.onnx", cross);
  }
  if (encoder.empty() || decoder.empty())
    return false;
  compile.input = decoder;
  compile.encoder.encoder = encoder;
  compile.encoder.crossAttention = cross;
  return true;
}

LogicalResult findFiles(CompileOptions &compile) {
  if (!isModelFolder(compile.input))
    return success();
  fs::path folder = normalize(compile.input);
  compile.pooling.folder = folder.string();
  findFile(folder, "tokenizer.json", compile.outputs.tokenizer);
  findFile(folder, "source.spm", compile.outputs.tokenizer); // Marian's
  findFile(folder, "generation_config.json", compile.outputs.generationConfig);
  findFile(folder, "config.json", compile.outputs.modelConfig);
  for (const fs::path &place : {folder, folder / "onnx"})
    if ((compile.encoder.embedding.empty() && findEmbedding(place, compile)) ||
        (!compile.encoder.isAsked() && findEncoderAndDecoder(place, compile)))
      return success();
  return findModel(compile.input);
}

std::string nameArtefact(StringRef model) {
  if (!isModelFolder(model))
    return replaceEnding(model, "hone");
  fs::path name = normalize(model).filename();
  bool isNamed = !name.empty() && name != "." && name != "..";
  return isNamed ? name.string() + ".hone" : "model.hone";
}

} // namespace hone
