// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A draft model beside the model.

#ifndef HONE_LIB_DRIVER_OPTIONS_DRAFT_H
#define HONE_LIB_DRIVER_OPTIONS_DRAFT_H

#include "Options/Output.h"
#include "Options/Target.h"

namespace hone {

struct DraftOptions {
  std::string source;    // a model's file, or `self:` and a form of the model; or empty
  std::string tokenizer; // the tokenizer.json of the draft model, or empty

  bool isAsked() const { return !source.empty(); }
  /// Whether the model itself is compressed to draft for itself.
  bool isSelf() const { return llvm::StringRef(source).starts_with(kSelf); }
  /// What it is compressed to: int8, int4, int3 or 2:4.
  llvm::StringRef getForm() const { return llvm::StringRef(source).drop_front(kSelf.size()); }
  /// The file of the draft model, or empty.
  std::string getFile() const { return isSelf() ? "" : source; }

  void declare(OptionSet &set, const TargetOptions &target, const OutputOptions &outputs, const PhaseOptions &phases) {
    set.add("draft", source, "DRAFT",
            "Put a draft model into the artefact, for speculative decoding: an .onnx, .mlir or .mlirbc file, or a "
            "compressed form of the model: self:int8, self:int4, self:int3 or self:2:4")
        .check([this]() -> std::string {
          if (!isSelf() || llvm::is_contained({"int8", "int4", "int3", "2:4"}, getForm()))
            return "";
          return "unsupported --draft=" + source + "; supported: self:int8, self:int4, self:int3, self:2:4, and files";
        })
        .check([&target] { return target.ranks == 1 ? "" : "expected no --draft with --tensor-parallel"; })
        .check([&phases] { return findPhaseFault(phases); });
    set.add("draft-tokenizer", tokenizer, "FILE",
            "tokenizer.json of the draft model, which has to have the tokens of --tokenizer")
        .needs("--draft=FILE", [this] { return isAsked() && !isSelf(); })
        .needs("--tokenizer", [&outputs] { return !outputs.tokenizer.empty(); });
  }

private:
  static constexpr llvm::StringLiteral kSelf = "self:";
  static constexpr llvm::StringLiteral kMerged = "tensor"; // the phase that begins with both models in one module

  static std::string findPhaseFault(const PhaseOptions &phases) {
    if (!phases.startFrom.empty())
      return "expected no --start-from with --draft, but got --start-from=" + phases.startFrom;
    if (phases.stopAfter.empty() || getPhaseNumber(phases.stopAfter) >= getPhaseNumber(kMerged))
      return "";
    return "expected no --stop-after before phase '" + kMerged.str() +
           "' with --draft, but got --stop-after=" + phases.stopAfter;
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_DRAFT_H
