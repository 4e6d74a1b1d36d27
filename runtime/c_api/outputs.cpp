// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results of calls, and DLPack in both directions.

#include "c_api/handles.h"

#include <algorithm>

namespace hone::capi {
namespace {

struct DlpackRow {
  hone_dtype dtype;
  uint8_t code, bits;
};

constexpr DlpackRow kDlpackTypes[] = {
    {HONE_F32, kDLFloat, 32},
    {HONE_F16, kDLFloat, 16},
    {HONE_BF16, kDLBfloat, 16},
    {HONE_F64, kDLFloat, 64},
    {HONE_I8, kDLInt, 8},
    {HONE_I16, kDLInt, 16},
    {HONE_I32, kDLInt, 32},
    {HONE_I64, kDLInt, 64},
    {HONE_U8, kDLUInt, 8},
    {HONE_U16, kDLUInt, 16},
    {HONE_U32, kDLUInt, 32},
    {HONE_U64, kDLUInt, 64},
    {HONE_BOOL, kDLBool, 8},
    {HONE_F8E4M3FN, kDLFloat8_e4m3fn, 8},
    {HONE_F8E4M3FNUZ, kDLFloat8_e4m3fnuz, 8},
    {HONE_F8E5M2, kDLFloat8_e5m2, 8},
    {HONE_F8E5M2FNUZ, kDLFloat8_e5m2fnuz, 8},
    {HONE_F8E8M0, kDLFloat8_e8m0fnu, 8},
    // One element a byte here, where DLPack packs: they go out as the integers they are in memory.
    {HONE_I4, kDLInt, 8},
    {HONE_U4, kDLUInt, 8},
    {HONE_C64, kDLComplex, 64},
    {HONE_C128, kDLComplex, 128},
    {HONE_F4E2M1, kDLUInt, 8},
    {HONE_I2, kDLInt, 8},
    {HONE_U2, kDLUInt, 8},
};

/// A DLPack tensor and what it keeps alive.
struct Managed {
  DLManagedTensorVersioned tensor = {};
  std::shared_ptr<const hone_outputs_contents> contents;
  std::vector<int64_t> shape, strides;
};

void deleteManaged(DLManagedTensorVersioned *tensor) { delete static_cast<Managed *>(tensor->manager_ctx); }

absl::StatusOr<const io::Array *> findOutput(const hone_outputs *outputs, std::string_view name) {
  const hone_outputs_contents &contents = *outputs->contents;
  auto found = std::ranges::find(contents.names, name);
  if (found == contents.names.end())
    return io::invalid("no output is named '", name, "'");
  return &contents.arrays[static_cast<size_t>(found - contents.names.begin())];
}

/// Views never write through the pointer of an output; the ABI's struct has no const variant.
hone_tensor viewOf(const io::Array &array) { return array.view(); }

absl::StatusOr<hone_tensor> fromDlpack(const DLTensor &source) {
  if (source.device.device_type != kDLCPU)
    return io::invalid("unsupported DLPack device ", static_cast<int>(source.device.device_type),
                       "; supported: host memory (1)");
  if (source.ndim < 0 || source.ndim > HONE_MAX_RANK || (source.ndim > 0 && !source.shape))
    return io::invalid("unsupported DLPack rank ", source.ndim, "; supported: up to ", HONE_MAX_RANK);
  const auto *row = std::ranges::find_if(kDlpackTypes, [&](const DlpackRow &candidate) {
    return candidate.code == source.dtype.code && candidate.bits == source.dtype.bits && source.dtype.lanes == 1;
  });
  if (row == std::end(kDlpackTypes))
    return io::invalid("unsupported DLPack type: code ", static_cast<int>(source.dtype.code), ", ",
                       static_cast<int>(source.dtype.bits), " bits, ", source.dtype.lanes, " lanes");
  std::span<const int64_t> shape(source.shape, static_cast<size_t>(source.ndim));
  if (!io::elementCount(shape))
    return io::invalid(io::shapeText(shape), " is no shape");
  hone_tensor tensor = io::denseView(static_cast<char *>(source.data) + source.byte_offset, row->dtype, shape);
  if (source.strides)
    std::copy_n(source.strides, source.ndim, tensor.strides);
  return tensor;
}

absl::StatusOr<DLManagedTensorVersioned *> toDlpack(const hone_outputs &outputs, std::string_view name) {
  HONE_ASSIGN_OR_RETURN(const io::Array *array, findOutput(&outputs, name));
  auto owner = std::make_unique<Managed>();
  hone_tensor view = viewOf(*array);
  owner->contents = outputs.contents;
  owner->shape.assign(view.sizes, view.sizes + view.rank);
  owner->strides.assign(view.strides, view.strides + view.rank);
  const auto *row = std::ranges::find(kDlpackTypes, array->dtype(), &DlpackRow::dtype);
  owner->tensor.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  owner->tensor.manager_ctx = owner.get();
  owner->tensor.deleter = deleteManaged;
  owner->tensor.dl_tensor = {view.data,           {kDLCPU, 0},           view.rank, {row->code, row->bits, 1},
                             owner->shape.data(), owner->strides.data(), 0};
  return &owner.release()->tensor;
}

} // namespace
} // namespace hone::capi

using namespace hone;
using namespace hone::capi;

size_t hone_outputs_count(const hone_outputs *outputs) { return outputs ? outputs->contents->names.size() : 0; }

const char *hone_outputs_name(const hone_outputs *outputs, size_t index) {
  return index < hone_outputs_count(outputs) ? outputs->contents->names[index].c_str() : nullptr;
}

hone_status hone_outputs_get(const hone_outputs *outputs, const char *name, hone_tensor *tensor) {
  if (!outputs || !name || !tensor)
    return reportNull("outputs, name and tensor");
  return reported([=]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const io::Array *array, findOutput(outputs, name));
    *tensor = viewOf(*array);
    return absl::OkStatus();
  });
}

void hone_outputs_free(hone_outputs *outputs) { delete outputs; }

hone_status hone_tensor_from_dlpack(const DLTensor *source, hone_tensor *tensor) {
  if (!source || !tensor)
    return reportNull("source and tensor");
  return reported([=]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(*tensor, fromDlpack(*source));
    return absl::OkStatus();
  });
}

hone_status hone_outputs_to_dlpack(const hone_outputs *outputs, const char *name, DLManagedTensorVersioned **managed) {
  if (!outputs || !name || !managed)
    return reportNull("outputs, name and managed");
  return reported([=]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(*managed, toDlpack(*outputs, name));
    return absl::OkStatus();
  });
}
