// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files of ai.onnx.ml functions share.

#ifndef HONE_LIB_DIALECT_ONNX_MACHINELEARNING_H
#define HONE_LIB_DIALECT_ONNX_MACHINELEARNING_H

#include "SchemaBuilding.h"

namespace hone::onnxir {

/// `to` = input 0 as floats.
void toFloats(FunctionBody &body, const std::string &to);
/// `label` = the one of the row's greatest in `scores`, of which there are `count` in a row; labels are those of `attribute`.
void chooseLabel(FunctionBody &body, const char *attribute, int64_t count, const std::string &scores,
                 const std::string &label);
/// `to` = what the node makes of `scores` at the end.
void finishScores(FunctionBody &body, const std::string &to);

void makeSvmClassifier(FunctionBody &body);
void makeSvmRegressor(FunctionBody &body);

} // namespace hone::onnxir

#endif // HONE_LIB_DIALECT_ONNX_MACHINELEARNING_H
