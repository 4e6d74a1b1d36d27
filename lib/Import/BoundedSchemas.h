// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libonnx's schemas, with bounds on what inference makes of values that shapes are computed from, and inference of the subgraphs that
// libonnx leaves out.

#ifndef HONE_LIB_IMPORT_BOUNDEDSCHEMAS_H
#define HONE_LIB_IMPORT_BOUNDEDSCHEMAS_H

#include "onnx/defs/schema.h"

#include <map>
#include <string>
#include <tuple>

namespace hone {

/// For one run of shape inference. libonnx keeps a dimension for each element of a value that may be part of a shape, whether it
/// knows the element or not, and a few bytes can claim any number of elements. Here values with more than
/// `kMaxPropagatedElements` are not propagated, and none is after `kMaxPropagatedInAll`.
class BoundedSchemas : public ::onnx::ISchemaRegistry {
public:
  const ::onnx::OpSchema *GetSchema(const std::string &name, int version, const std::string &domain) const override;

private:
  void propagate(const ::onnx::OpSchema &schema, ::onnx::DataPropagationContext &context) const;

  mutable std::map<const ::onnx::OpSchema *, ::onnx::OpSchema> schemas;
  mutable int64_t propagated = 0;
};

} // namespace hone

#endif // HONE_LIB_IMPORT_BOUNDEDSCHEMAS_H
