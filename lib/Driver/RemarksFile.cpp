// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's serializer of remarks over a file of ours.

#include "RemarksFile.h"

#include "FileStream.h"
#include "hone/Dialect/Hone/Report.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Remarks/Remark.h"
#include "llvm/Remarks/RemarkSerializer.h"

using namespace mlir;

namespace hone {

/// The file until it is committed.
struct RemarksFile::State {
  explicit State(io::FileWriter opened) : writer(std::move(opened)), stream(writer) {}

  io::FileWriter writer;
  FileStream stream;
  std::unique_ptr<llvm::remarks::RemarkSerializer> serializer;
};

namespace {
class Streamer : public remark::detail::MLIRRemarkStreamerBase {
public:
  using Emit = std::function<void(const llvm::remarks::Remark &)>;
  explicit Streamer(Emit emit) : emit(std::move(emit)) {}
  void streamOptimizationRemark(const remark::detail::Remark &remark) override { emit(remark.generateRemark()); }

private:
  Emit emit;
};
} // namespace

RemarksFile::~RemarksFile() {
  if (state)
    state->serializer.reset();
}

FailureOr<std::unique_ptr<RemarksFile>> RemarksFile::open(const std::string &path, MLIRContext &context, Location loc) {
  auto file = std::make_unique<RemarksFile>();
  if (path.empty())
    return file;
  auto writer = io::FileWriter::create(path);
  if (failed(report(loc, writer.status())))
    return failure();
  file->state = std::make_shared<State>(std::move(*writer));
  auto serializer = llvm::remarks::createRemarkSerializer(llvm::remarks::Format::YAML, file->state->stream);
  if (!serializer)
    return emitError(loc) << "cannot write " << path << ": " << llvm::toString(serializer.takeError());
  file->state->serializer = std::move(*serializer);
  // What writes remarks is not safe for threads, and their order would not always be the same.
  context.disableMultithreading();
  remark::RemarkCategories everything;
  everything.passed = everything.missed = everything.analysis = everything.failed = ".*";
  auto emit = [state = file->state](const llvm::remarks::Remark &remark) {
    if (state->serializer)
      state->serializer->emit(remark);
  };
  if (failed(remark::enableOptimizationRemarks(context, std::make_unique<Streamer>(emit),
                                               std::make_unique<remark::RemarkEmittingPolicyAll>(), everything)))
    return emitError(loc) << "cannot write remarks to '" << path << "'";
  return file;
}

LogicalResult RemarksFile::commit(Location loc) {
  if (!state)
    return success();
  state->serializer.reset();
  state->stream.flush();
  return report(loc, state->stream.status.ok() ? state->writer.commit() : state->stream.status);
}

} // namespace hone
