// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model that is mapped must not change while it is read, and who names it as an output has made a mistake.

#include "Outputs.h"

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/Report.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace hone {

io::InputFiles listInputs(const CompileOptions &options, ArrayRef<ModuleOp> modules) {
  io::InputFiles inputs;
  for (const std::string &file :
       {options.input, options.outputs.tokenizer, options.compression.statistics,
        options.compression.quantization.pass.sensitivities, options.compression.quantization.pass.outlierShares,
        options.target.ptxas, options.draft.getFile(), options.draft.tokenizer, options.encoder.encoder,
        options.encoder.crossAttention, options.encoder.embedding, options.outputs.generationConfig,
        options.outputs.modelConfig, options.retention.pass.importance})
    inputs.add(file);
  for (const std::string &file : options.otherInputs)
    inputs.add(file);
  std::string last; // parameters of one file follow each other
  AttrTypeWalker walker;
  walker.addWalk([&](ExternalAttr external) {
    if (external.getFile() != last)
      inputs.add(last = external.getFile().str());
  });
  for (ModuleOp module : modules)
    module.walk([&](ParamOp param) { walker.walk(param->getAttrDictionary()); });
  return inputs;
}

LogicalResult checkOutputs(const CompileOptions &options, const io::InputFiles &inputs, Location loc) {
  std::vector<std::string> outputs = {options.outputs.path, options.outputs.remarks};
  outputs.insert(outputs.end(), options.outputs.others.begin(), options.outputs.others.end());
  for (const std::string &output : outputs)
    if (output != "-" && failed(report(loc, inputs.checkOutput(output))))
      return failure();
  return success();
}

} // namespace hone
