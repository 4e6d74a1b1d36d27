// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules, introspection and calls of the C interface.

#include "c_api/handles.h"
#include "core/communicator.h"

#include "generate/text_writer.h"

#include <algorithm>

namespace hone::capi {
namespace {

std::optional<std::span<const io::TensorInfo>> tensorsOf(const io::Manifest &manifest, const io::EntryInfo &entry,
                                                         hone_role role) {
  switch (role) {
  case HONE_INPUT:
    return entry.inputs;
  case HONE_OUTPUT:
    return entry.outputs;
  case HONE_STATE:
    return manifest.slotsOf(entry);
  }
  return std::nullopt;
}

absl::StatusOr<std::span<const io::TensorInfo>> findTensors(const hone_module *module, const char *name,
                                                            hone_role role) {
  const io::Manifest &manifest = module->module->manifest();
  const io::EntryInfo *entry = manifest.entry(name);
  if (!entry)
    return io::invalid(module->module->folder(), ": has no entry '", name, "'");
  std::optional<std::span<const io::TensorInfo>> tensors = tensorsOf(manifest, *entry, role);
  if (!tensors)
    return io::invalid("unknown role ", static_cast<int>(role));
  return *tensors;
}

absl::StatusOr<std::shared_ptr<const rt::Module>> loadForAll(const char *folder) {
  auto loaded = rt::Module::load(folder);
  if (!loaded.ok())
    rt::failRanks(); // the others may have loaded it
  return loaded;
}

hone_tensor_info describe(const io::TensorInfo &tensor) {
  hone_tensor_info info = {};
  info.name = tensor.name.c_str();
  info.dtype = tensor.dtype;
  info.rank = static_cast<int32_t>(tensor.shape.size());
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    info.sizes[axis] = tensor.shape[axis].isFixed() ? tensor.shape[axis].size : -1;
    info.symbols[axis] = tensor.shape[axis].isFixed() ? nullptr : tensor.shape[axis].symbol.c_str();
  }
  return info;
}

} // namespace
} // namespace hone::capi

using namespace hone;
using namespace hone::capi;

const char *hone_version(void) { return HONE_VERSION; }

uint32_t hone_api_version(void) { return HONE_API_VERSION; }

hone_status hone_module_open(const char *folder, hone_module **module) {
  if (!folder || !module)
    return reportNull("folder and module");
  return reported([=]() -> absl::Status {
    auto opened = std::make_unique<hone_module>();
    HONE_ASSIGN_OR_RETURN(opened->module, loadForAll(folder));
    HONE_ASSIGN_OR_RETURN(opened->tokenizer, rt::loadTokenizer(*opened->module));
    *module = opened.release();
    return absl::OkStatus();
  });
}

void hone_module_close(hone_module *module) { delete module; }

size_t hone_module_entry_count(const hone_module *module) {
  return module ? module->module->manifest().entries.size() : 0;
}

const char *hone_module_entry_name(const hone_module *module, size_t index) {
  return index < hone_module_entry_count(module) ? module->module->manifest().entries[index].name.c_str() : nullptr;
}

hone_status hone_module_tensor_count(const hone_module *module, const char *entry, hone_role role, size_t *count) {
  if (!module || !entry || !count)
    return reportNull("module, entry and count");
  return reported([=]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(std::span<const io::TensorInfo> tensors, findTensors(module, entry, role));
    *count = tensors.size();
    return absl::OkStatus();
  });
}

hone_status hone_module_tensor_info(const hone_module *module, const char *entry, hone_role role, size_t index,
                                    hone_tensor_info *info) {
  if (!module || !entry || !info)
    return reportNull("module, entry and info");
  return reported([=]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(std::span<const io::TensorInfo> tensors, findTensors(module, entry, role));
    if (index >= tensors.size())
      return io::invalid("entry '", entry, "' has ", tensors.size(), " tensors of that role, but ", index,
                         " was asked for");
    if (info->struct_size < sizeof(size_t))
      return io::invalid("expected struct_size to be the size of the struct, but got ", info->struct_size);
    hone_tensor_info full = describe(tensors[index]);
    full.struct_size = std::min(info->struct_size, sizeof full);
    std::memcpy(info, &full, full.struct_size);
    return absl::OkStatus();
  });
}

hone_status hone_module_call(const hone_module *module, const char *entry, const hone_named_tensor *inputs,
                             size_t input_count, int32_t threads, hone_outputs **outputs) {
  if (!module || !entry || !outputs)
    return reportNull("module, entry and outputs");
  return reported([=]() -> absl::Status {
    HONE_RETURN_IF_ERROR(checkThreads(threads));
    HONE_ASSIGN_OR_RETURN(std::vector<rt::NamedTensor> tensors, takeInputs(inputs, input_count));
    HONE_ASSIGN_OR_RETURN(std::vector<io::Array> arrays, module->module->call(entry, tensors, threads));
    *outputs = PendingOutputs(*module->module->manifest().entry(entry)).release(std::move(arrays));
    return absl::OkStatus();
  });
}

hone_status hone_module_encode(const hone_module *module, const char *text, int64_t *tokens, size_t capacity,
                               size_t *count) {
  if (!module || !text || !count || (!tokens && capacity > 0))
    return reportNull("module, text, tokens and count");
  return reported([=]() -> absl::Status {
    if (!module->tokenizer)
      return io::invalid(module->module->folder(), ": has no tokenizer");
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> ids, rt::encodePrompt(*module->tokenizer, text));
    *count = ids.size();
    std::copy_n(ids.begin(), std::min(capacity, ids.size()), tokens);
    return absl::OkStatus();
  });
}
