// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the dynamic `onnx` dialect and verifies its operations against their ONNX schemas.

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/ExtensibleDialect.h"
#include "onnx/defs/schema.h"
#include "llvm/ADT/StringSet.h"

#include <mutex>

using namespace mlir;
using ::onnx::OpSchema;

#include "hone/Dialect/Onnx/OnnxDialect.cpp.inc"

#define GET_OP_CLASSES
#include "hone/Dialect/Onnx/OnnxOps.cpp.inc"

namespace hone::onnxir {

bool isOnnxOp(Operation *op) { return op->getName().getDialectNamespace() == kDialectName; }

llvm::StringRef getOpType(Operation *op) { return op->getName().getStringRef().rsplit('.').second; }

bool isNode(Operation *op, StringRef opType) { return op && isOnnxOp(op) && getOpType(op) == opType; }

llvm::StringRef getDomain(Operation *op) {
  StringRef qualified = op->getName().getStringRef().drop_front(kDialectName.size() + 1);
  return qualified.contains('.') ? qualified.rsplit('.').first : StringRef();
}

std::string getOperationName(llvm::StringRef domain, llvm::StringRef opType) {
  std::string name = (kDialectName + ".").str();
  if (!domain.empty())
    name += (domain + ".").str();
  return name + opType.str();
}

int64_t getOpsetVersion(Operation *op, llvm::StringRef domain) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto opsets = module ? module->getAttrOfType<DictionaryAttr>(kOpsetsAttr) : DictionaryAttr();
  auto version = opsets ? dyn_cast_or_null<IntegerAttr>(opsets.get(domain.empty() ? StringRef(kDefaultDomain) : domain))
                        : IntegerAttr();
  return version ? version.getInt() : 0;
}

const OpSchema *getSchema(Operation *op) {
  StringRef domain = getDomain(op);
  int64_t version = getOpsetVersion(op, domain);
  // IR written by hand may leave the opset out: it means the newest one.
  if (version == 0)
    version = std::numeric_limits<int>::max();
  return ::onnx::OpSchemaRegistry::Schema(getOpType(op).str(), static_cast<int>(version), domain.str());
}

Region *getSubgraph(Operation *op, llvm::StringRef name) {
  auto names = op->getAttrOfType<ArrayAttr>(kRegionsAttr);
  for (auto [i, attr] : llvm::enumerate(names ? names.getValue() : llvm::ArrayRef<Attribute>()))
    if (auto string = dyn_cast<StringAttr>(attr); string && string.getValue() == name && i < op->getNumRegions())
      return &op->getRegion(i);
  return nullptr;
}

bool isAbsent(Value value) { return isa<NoneType>(value.getType()); }

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static LogicalResult verifyCount(Operation *op, StringRef what, int64_t count, int64_t least, int64_t most) {
  if (count >= least && count <= most)
    return success();
  auto diagnostic = op->emitOpError() << "expected ";
  if (least == most)
    diagnostic << least;
  else if (most == std::numeric_limits<int>::max())
    diagnostic << "at least " << least;
  else
    diagnostic << least << " to " << most;
  return diagnostic << ' ' << what << ", but got " << count;
}

static bool hasAttributeType(Attribute attr, ::onnx::AttributeProto_AttributeType type) {
  using ::onnx::AttributeProto;
  switch (type) {
  case AttributeProto::FLOAT:
    return isa<FloatAttr>(attr);
  case AttributeProto::INT:
    return isa<IntegerAttr>(attr);
  case AttributeProto::STRING:
    return isa<StringAttr>(attr);
  case AttributeProto::FLOATS:
    return isa<DenseF32ArrayAttr>(attr);
  case AttributeProto::INTS:
    return isa<DenseI64ArrayAttr>(attr);
  case AttributeProto::STRINGS:
    return isa<ArrayAttr>(attr);
  case AttributeProto::TENSOR:
    return isa<ElementsAttr>(attr);
  case AttributeProto::TYPE_PROTO:
    return isa<TypeAttr>(attr);
  default:
    return true;
  }
}

static LogicalResult verifyAttributes(Operation *op, const OpSchema &schema) {
  for (const auto &[name, attribute] : schema.attributes()) {
    Attribute attr = op->getAttr(name);
    if (!attr) {
      if (attribute.required && !getSubgraph(op, name))
        return op->emitOpError() << "expected attribute '" << name << "', but it is missing";
      continue;
    }
    if (!hasAttributeType(attr, attribute.type))
      return op->emitOpError() << "expected attribute '" << name << "' to be "
                               << ::onnx::AttributeProto_AttributeType_Name(attribute.type) << ", but got " << attr;
  }
  return success();
}

static LogicalResult verifyWithSchema(Operation *op) {
  const OpSchema *schema = getSchema(op);
  if (!schema)
    return op->emitOpError() << "expected an operator of domain '" << getDomain(op) << "' at opset "
                             << getOpsetVersion(op, getDomain(op)) << ", but there is none of this name";
  if (failed(verifyCount(op, "inputs", op->getNumOperands(), schema->min_input(), schema->max_input())) ||
      failed(verifyCount(op, "outputs", op->getNumResults(), schema->min_output(), schema->max_output())))
    return failure();
  return verifyAttributes(op, *schema);
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

static void registerOperation(ExtensibleDialect *dialect, StringRef name, OperationName::VerifyInvariantsFn &&verify) {
  dialect->registerDynamicOp(
      DynamicOpDefinition::get(name, dialect, std::move(verify), [](Operation *) { return success(); }));
}

static LogicalResult verifyTypeParameters(function_ref<InFlightDiagnostic()> emitError, ArrayRef<Attribute> parameters,
                                          size_t expected) {
  if (parameters.size() == expected)
    return success();
  return emitError() << "expected " << expected << " type parameters, but got " << parameters.size();
}

static void registerType(ExtensibleDialect *dialect, StringRef name, size_t parameters) {
  dialect->registerDynamicType(DynamicTypeDefinition::get(
      name, dialect, [parameters](function_ref<InFlightDiagnostic()> emitError, ArrayRef<Attribute> given) {
        return verifyTypeParameters(emitError, given, parameters);
      }));
}

void OnnxDialect::registerOperators() {
  llvm::StringSet<> seen;
  for (const OpSchema &schema : ::onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    std::string name = getOperationName(schema.domain(), schema.Name()).substr(kDialectName.size() + 1);
    if (seen.insert(name).second)
      registerOperation(this, name, verifyWithSchema);
  }
  registerType(this, "string", 0);
  registerType(this, "unknown", 0);
  for (StringRef container : {"sequence", "optional", "map", "sparse"})
    registerType(this, container, 1);
}

Type OnnxDialect::parseType(DialectAsmParser &parser) const {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseKeyword(&name)))
    return {};
  Type type;
  OptionalParseResult result = parseOptionalDynamicType(name, parser, type);
  if (!result.has_value())
    parser.emitError(loc) << "unsupported type '" << name
                          << "' of the onnx dialect; supported: string, unknown, sequence, optional, map, sparse";
  return type;
}

void OnnxDialect::printType(Type type, DialectAsmPrinter &printer) const {
  (void)printIfDynamicType(type, printer); // the dialect has no others
}

void OnnxDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "hone/Dialect/Onnx/OnnxOps.cpp.inc"
      >();
  static std::once_flag once;
  std::call_once(once, registerMicrosoftSchemas);
  registerOperators();
}

void registerDialect(DialectRegistry &registry) { registry.insert<OnnxDialect>(); }

static Type getDynamicType(MLIRContext *context, StringRef name, ArrayRef<Attribute> parameters) {
  auto *dialect = cast<ExtensibleDialect>(context->getOrLoadDialect(kDialectName));
  return DynamicType::get(dialect->lookupTypeDefinition(name), parameters);
}

Type getStringType(MLIRContext *context) { return getDynamicType(context, "string", {}); }
Type getUnknownType(MLIRContext *context) { return getDynamicType(context, "unknown", {}); }
Type getContainerType(MLIRContext *context, StringRef kind, Type element) {
  return getDynamicType(context, kind, {TypeAttr::get(element)});
}

} // namespace hone::onnxir
