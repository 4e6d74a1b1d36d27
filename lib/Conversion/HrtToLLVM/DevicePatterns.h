// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The services of programs for a device (include/hone/runtime/device.h).

#ifndef HONE_LIB_CONVERSION_HRTTOLLVM_DEVICEPATTERNS_H
#define HONE_LIB_CONVERSION_HRTTOLLVM_DEVICEPATTERNS_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "llvm/ADT/StringMap.h"

namespace hone {

/// hrt.alloc, hrt.free, copies and hrt.launch; `kernels` are the numbers of the generated kernels.
void populateDevicePatterns(mlir::LLVMTypeConverter &types, llvm::StringMap<int64_t> kernels,
                            mlir::RewritePatternSet &patterns);

} // namespace hone

#endif // HONE_LIB_CONVERSION_HRTTOLLVM_DEVICEPATTERNS_H
