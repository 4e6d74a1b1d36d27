// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The folder of an artefact: written beside its place, and put there whole.

#include "hone/Artefact/Artefact.h"

#include "FormerArtefact.h"
#include "hone/Conversion/ProgramSignature.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/io/file.h"
#include "hone/io/signature.h"
#include "hone/text/marian.h"
#include "hone/text/tokenizer.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace hone {

FailureOr<io::TemporaryPath> makeTemporaryFolder(StringRef path, Location loc) {
  std::error_code error;
  std::string name;
  auto folder = io::makeBeside(path.str(), [&](const std::string &free) {
    name = free;
    error = llvm::sys::fs::create_directory(free, /*IgnoreExisting=*/false, llvm::sys::fs::all_all);
    errno = error.value();
    return !error;
  });
  if (error)
    return emitError(loc) << "cannot make folder '" << name << "': " << error.message();
  return folder;
}

/// The path of the folder that `path` names: links at its end are followed, it ends in a name, and no tool that it is given to takes it
/// for an option or for a file of options.
static absl::StatusOr<std::string> getFolder(StringRef path) {
  StringRef clean = path.rtrim('/');
  HONE_ASSIGN_OR_RETURN(std::string folder, io::followLinks(clean.empty() ? path.str() : clean.str()));
  StringRef name = llvm::sys::path::filename(folder);
  if (name != "." && name != "..")
    return StringRef("-@").contains(folder.front()) ? "./" + folder : folder;
  SmallString<128> real;
  if (std::error_code error = llvm::sys::fs::real_path(folder, real))
    return io::invalid("cannot write '", path.str(), "': ", error.message());
  return real.str().str();
}

FailureOr<ArtefactWriter> ArtefactWriter::create(StringRef path, const io::InputFiles &inputs, Location loc) {
  absl::StatusOr<std::string> place = getFolder(path);
  if (failed(report(loc, place.status())))
    return failure();
  ArtefactWriter writer(path, *place, inputs, loc);
  llvm::sys::fs::file_status before;
  std::error_code error = llvm::sys::fs::status(*place, before, /*follow=*/false);
  if (!error && failed(report(loc, checkFormerArtefact(path.str(), *place, inputs))))
    return failure();
  FailureOr<io::TemporaryPath> folder = makeTemporaryFolder(*place, loc);
  if (failed(folder))
    return failure();
  writer.folder = std::move(*folder);
  // Who may read the old one may read the new one.
  if (!error)
    (void)llvm::sys::fs::setPermissions(writer.folder.path(), before.permissions() | llvm::sys::fs::owner_all);
  return writer;
}

std::string ArtefactWriter::getFile(StringRef name) const { return folder.path() + "/" + name.str(); }

/// The tokenizer.json of a Marian model's source.spm.
static absl::StatusOr<std::string> convertPieces(StringRef file) {
  SmallString<128> vocabulary(llvm::sys::path::parent_path(file));
  llvm::sys::path::append(vocabulary, "vocab.json");
  HONE_ASSIGN_OR_RETURN(std::string pieces, io::readFile(file.str()));
  HONE_ASSIGN_OR_RETURN(std::string ids, io::readFile(vocabulary.str().str()));
  return text::makeMarianTokenizer(pieces, ids, file.str());
}

LogicalResult ArtefactWriter::addTokenizer(StringRef file) {
  auto json = file.ends_with(".spm") ? convertPieces(file) : io::readFile(file.str());
  if (!json.ok())
    return report(loc, json.status());
  if (auto tokenizer = text::Tokenizer::fromJson(*json); !tokenizer.ok())
    return report(loc, io::invalid(file.str(), ": ", tokenizer.status().message()));
  return report(loc, io::writeFile(getFile("tokenizer.json"), *json));
}

LogicalResult ArtefactWriter::startWeights(ModuleOp module, int64_t ranks) {
  addresses = listAddresses(module);
  std::vector<std::string> paths;
  for (int64_t rank = 0; rank < ranks; ++rank)
    paths.push_back(getFile(io::weightsFile(ranks, rank)));
  FailureOr<WeightsWriter> started = WeightsWriter::start(module, paths);
  if (failed(started))
    return failure();
  weights.emplace(std::move(*started));
  return success();
}

LogicalResult ArtefactWriter::signProgram(ModuleOp module, const io::Manifest &manifest) const {
  // As the loader will read them: a name that is no UTF-8 is another one in JSON.
  auto described = io::parseManifest(io::manifestText(manifest), getFile("manifest.json"));
  if (!described.ok())
    return report(loc, described.status());
  auto tensors = weights->getTensors();
  if (!tensors.ok())
    return report(loc, tensors.status());
  addProgramSignature(module, io::signatureOf(*described) + io::signatureOf(*tensors), addresses);
  return success();
}

LogicalResult ArtefactWriter::commit(io::Manifest manifest) {
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder.path(), error), end; it != end && !error; it.increment(error)) {
    uint64_t size = 0;
    if ((error = llvm::sys::fs::file_size(it->path(), size)))
      break;
    manifest.fileBytes[llvm::sys::path::filename(it->path()).str()] = size;
  }
  // Code that was damaged would do anything. Weights are mapped, and read as they are needed.
  for (const std::string &code : {std::string("program.so"), manifest.device ? manifest.device->file : std::string()}) {
    if (code.empty())
      continue;
    auto content = io::MappedFile::open(getFile(code));
    if (!content.ok())
      return report(loc, content.status());
    manifest.fileChecksums[code] = io::crcOf(content->text());
  }
  if (error)
    return emitError(loc) << "cannot read '" << folder.path() << "': " << error.message();
  if (failed(report(loc, io::writeFile(getFile("manifest.json"), io::manifestText(manifest)))))
    return failure();
  // An artefact of before makes way only once the new one is whole.
  auto check = [&](const std::string &there) { return checkFormerArtefact(path, there, inputs); };
  return report(loc, io::putInPlace(folder, place, check));
}

} // namespace hone
