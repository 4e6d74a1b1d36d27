// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs that are the same in all calls of a session.

#include "core/inputs.h"
#include "core/module.h"

namespace hone::rt {

using io::cat;
using io::invalid;

/// The context input of that name; fails with the names that there are.
static absl::StatusOr<const io::TensorInfo *> findContext(const io::EntryInfo &entry, std::string_view name) {
  std::string names;
  for (const io::TensorInfo &input : entry.inputs) {
    if (input.isContext && input.name == name)
      return &input;
    if (input.isContext)
      names += (names.empty() ? "" : ", ") + input.name;
  }
  return invalid("unknown context '", name, "'; the context of '", entry.name,
                 "' is: ", names.empty() ? "(none)" : names);
}

absl::Status Session::checkContextName(std::string_view name) const { return findContext(*target.info, name).status(); }

absl::Status Session::checkBeginning() const {
  return memory.length() == 0
             ? absl::OkStatus()
             : invalid("cannot set context after ", memory.length(), " positions; reset the session first");
}

absl::Status Session::encode(std::span<const NamedTensor> inputs) {
  HONE_RETURN_IF_ERROR(checkBeginning());
  HONE_ASSIGN_OR_RETURN(const io::EntryInfo *encoder, owner->findEntryInfo(kEncoderEntry));
  HONE_ASSIGN_OR_RETURN(std::vector<io::Array> outputs, call(kEncoderEntry, inputs));
  std::map<std::string, Context> fresh;
  Symbols symbols;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string &name = encoder->outputs[i].name;
    HONE_ASSIGN_OR_RETURN(const io::TensorInfo *info, findContext(*target.info, name));
    HONE_RETURN_IF_ERROR(checkInput(*info, outputs[i].view(), symbols));
    fresh.insert_or_assign(name, Context{std::move(outputs[i]), ++contextVersion});
  }
  fresh.merge(context);
  context = std::move(fresh);
  return absl::OkStatus();
}

absl::Status Session::setContext(std::span<const NamedTensor> inputs) {
  HONE_RETURN_IF_ERROR(checkBeginning());
  std::map<std::string, Context> fresh;
  Symbols symbols;
  for (const NamedTensor &input : inputs) {
    HONE_ASSIGN_OR_RETURN(const io::TensorInfo *info, findContext(*target.info, input.name));
    HONE_RETURN_IF_ERROR(checkInput(*info, input.tensor, symbols));
    HONE_ASSIGN_OR_RETURN(io::Array copy, io::Array::copyOf(input.tensor));
    fresh.insert_or_assign(info->name, Context{std::move(copy), ++contextVersion});
  }
  fresh.merge(context); // what was not given again
  context = std::move(fresh);
  return absl::OkStatus();
}

absl::Status Session::fillContext(std::string_view name) {
  HONE_ASSIGN_OR_RETURN(const io::TensorInfo *info, findContext(*target.info, name));
  if (context.contains(info->name))
    return absl::OkStatus();
  HONE_RETURN_IF_ERROR(checkBeginning());
  std::vector<int64_t> shape;
  for (const io::Dim &dim : info->shape)
    shape.push_back(dim.isFixed() ? dim.size : 1);
  HONE_ASSIGN_OR_RETURN(io::Array zeros, io::Array::zeros(info->dtype, shape));
  context.emplace(info->name, Context{std::move(zeros), ++contextVersion, /*isFilled=*/true});
  return absl::OkStatus();
}

const io::Array *Session::givenContext(std::string_view name) const {
  auto found = context.find(std::string(name));
  return found == context.end() || found->second.isFilled ? nullptr : &found->second.array;
}

} // namespace hone::rt
