// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The exception by which a schema's function says that it does not cover a node.

#ifndef HONE_DIALECT_ONNX_UNSUPPORTEDFORM_H
#define HONE_DIALECT_ONNX_UNSUPPORTEDFORM_H

#include <stdexcept>

namespace hone::onnxir {

/// Thrown through libonnx by the functions of com.microsoft (lib/Dialect/Onnx), for whoever asked for one; its text is what a
/// diagnostic says after the node's name.
class UnsupportedForm : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace hone::onnxir

#endif // HONE_DIALECT_ONNX_UNSUPPORTEDFORM_H
