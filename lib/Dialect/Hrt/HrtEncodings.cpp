// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hrt.panels and blocks of keys and values: the layouts themselves are in hone/cpu/packing,
// for the runtime that reads them as well.

#include "Panels.h"

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/PlainElements.h"
#include "hone/cpu/packing/layout.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/Parallel.h"

using namespace mlir;

namespace hone::hrt {

//===----------------------------------------------------------------------===//
// What is packed
//===----------------------------------------------------------------------===//

FloatType getFloat(PanelsAttr panels) {
  Attribute elements = panels.getNm() ? panels.getNm().getOf() : panels.getElements();
  return cast<FloatType>(cast<TypeAttr>(elements).getValue());
}

static cpu::PackedFormat getFormat(AffineAttr affine) {
  switch (affine.getBits()) {
  case 2:
    return cpu::PackedFormat::U2;
  case 3:
    return cpu::PackedFormat::U3;
  case 4:
    return cpu::PackedFormat::U4;
  default:
    return cpu::PackedFormat::U8;
  }
}

cpu::PackedFormat getFormat(PanelsAttr panels) {
  if (AffineAttr affine = panels.getAffine())
    return getFormat(affine);
  FloatType type = getFloat(panels);
  if (type.isF32())
    return cpu::PackedFormat::F32;
  return type.isF16() ? cpu::PackedFormat::F16 : cpu::PackedFormat::Bf16;
}

cpu::LinearShape getLinearShape(PanelsAttr panels, ArrayRef<int64_t> shape) {
  AffineAttr affine = panels.getAffine();
  return {shape[0], shape[1], affine ? affine.getGroup() : 0};
}

/// Kernels that pick inputs multiply signed bytes, code - zero: of 8 bits with zero points, that is 9.
static bool hasSparseKernel(AffineAttr affine) {
  return !affine || affine.getBits() == 4 || (affine.getBits() == 8 && !affine.getHasZeros());
}

static bool isPackable(Attribute elements) {
  if (auto nm = dyn_cast<NmAttr>(elements))
    return nm.getN() == 2 && nm.getM() == 4 && isPackable(nm.getOf()) && hasSparseKernel(nm.getAffine());
  if (auto sparse = dyn_cast<DenseSparseAttr>(elements))
    return isPackable(sparse.getBase());
  if (auto codebook = dyn_cast<CodebookAttr>(elements))
    return codebook.getValues().isBF16(); // which products multiply in pairs
  if (auto affine = dyn_cast<AffineAttr>(elements)) {
    static constexpr int64_t groups[] = {0, 32, 64, 128};
    return llvm::is_contained(groups, affine.getGroup());
  }
  auto type = dyn_cast<TypeAttr>(elements);
  return type && isa<Float32Type, Float16Type, BFloat16Type>(type.getValue());
}

bool PanelsAttr::canPack(Attribute encoding) {
  return !encoding || isa<StoredAttr>(encoding) ||
         (isa<AffineAttr, CodebookAttr, NmAttr, DenseSparseAttr>(encoding) && isPackable(encoding));
}

LogicalResult PanelsAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Attribute elements) {
  if (!isPackable(elements)) // panels C1
    return emitError() << "unsupported packed elements " << elements
                       << "; supported: f32, f16, bf16, #hone.affine in groups of 0, 32, 64 or 128, "
                          "2:4 #hone.nm of these floats and of #hone.affine of 4 bits or of 8 without zero points, "
                          "#hone.codebook of bf16, #hone.dense_sparse of #hone.affine and of #hone.codebook";
  return success();
}

LogicalResult PanelsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                         llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (getSparse() && failed(getSparse().verifyEncoding(shape, elementType, emitError)))
    return failure();
  bool isFloat = !getAffine() && !getCodebook(), isSame = isFloat && elementType == getFloat(*this);
  if (shape.size() != 2 || (!isSame && !elementType.isF32())) // panels C2
    return emitError() << "expected a tensor in panels of " << getElements()
                       << " to have 2 dimensions and elements of f32"
                       << (!isFloat || getFloat(*this).isF32() ? "" : " or the same") << ", but got " << shape.size()
                       << " and " << elementType;
  return success();
}

static LogicalResult verifyBlocks(StringRef what, int64_t bits, ArrayRef<int64_t> shape, Type elementType,
                                  llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (bits != 0 && !elementType.isF32()) // key_blocks C2, value_blocks C2
    return emitError() << "expected " << what << " in blocks of " << bits << " bits to have elements of f32, but got "
                       << elementType;
  if (shape.size() != 4 || !KeyBlocksAttr::canBlock(elementType)) // key_blocks C1, value_blocks C1
    return emitError() << "expected " << what
                       << " in blocks to have 4 dimensions and elements of f32, f16 or bf16, but got " << shape.size()
                       << " and " << elementType;
  return success();
}

static LogicalResult verifyBits(int64_t bits, llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (bits == 0 || bits == 4 || bits == 8) // key_blocks C2, value_blocks C2
    return success();
  return emitError() << "unsupported number of bits " << bits << " of numbers in blocks; supported: 0, 4, 8";
}

LogicalResult KeyBlocksAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t bits) {
  return verifyBits(bits, emitError);
}

LogicalResult ValueBlocksAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t bits) {
  return verifyBits(bits, emitError);
}

StringRef KeyBlocksAttr::getLayoutName() const { return getMnemonic(); }

StringRef ValueBlocksAttr::getLayoutName() const { return getMnemonic(); }

int64_t KeyBlocksAttr::getIntegerBits() const { return getBits(); }

int64_t ValueBlocksAttr::getIntegerBits() const { return getBits(); }

LogicalResult KeyBlocksAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                            llvm::function_ref<InFlightDiagnostic()> emitError) const {
  return verifyBlocks("keys", getBits(), shape, elementType, emitError);
}

LogicalResult ValueBlocksAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                              llvm::function_ref<InFlightDiagnostic()> emitError) const {
  return verifyBlocks("values", getBits(), shape, elementType, emitError);
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// Codes of 16 outputs at a time, one byte each, and then in their panel.
static void packCodes(PanelsAttr panels, ArrayRef<int64_t> shape, ArrayRef<char> from, MutableArrayRef<char> to) {
  AffineAttr affine = panels.getAffine();
  cpu::PackedFormat format = getFormat(panels);
  int64_t rows = shape[0], columns = shape[1];
  llvm::parallelFor(0, llvm::divideCeil(rows, cpu::kPanelOutputs), [&](int64_t panel) {
    int64_t first = panel * cpu::kPanelOutputs, count = std::min(cpu::kPanelOutputs, rows - first);
    SmallVector<uint8_t> codes(count * columns);
    for (int64_t row = 0; row < count; ++row)
      affine.loadCodes(from, rows, first + row, MutableArrayRef(codes).slice(row * columns, columns));
    cpu::LinearShape part{count, columns, affine.getGroup()};
    int64_t bytes = cpu::packedLinearBytes(format, part);
    cpu::packLinearWeight(format, part, {codes.data(), columns, 1}, asSpan(to.slice(panel * bytes, bytes)));
  });
}

void packGroups(PanelsAttr panels, ArrayRef<int64_t> shape, ArrayRef<ArrayRef<char>> from,
                ArrayRef<MutableArrayRef<char>> to) {
  AffineAttr affine = panels.getAffine();
  cpu::PackedFormat format = getFormat(panels);
  cpu::LinearShape linear = getLinearShape(panels, shape);
  int64_t rows = shape[0], groups = affine.getGroups(shape), bytes = affine.getScales().getIntOrFloatBitWidth() / 8;
  SmallVector<char> scales(rows * groups * bytes);
  SmallVector<uint8_t> zeros(affine.getHasZeros() ? rows * groups : 0);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t group = 0; group < groups; ++group) {
      int64_t place = row * groups + group, source = affine.getTransposed() ? group * rows + row : place;
      std::memcpy(scales.data() + place * bytes, from[1].data() + source * bytes, bytes);
    }
  for (int64_t row = 0; affine.getHasZeros() && row < rows; ++row)
    affine.loadCodes(from[2], rows, row, MutableArrayRef(zeros).slice(row * groups, groups));
  cpu::packLinearScales(format, linear, bytes, scales.data(), asSpan(to[1]));
  if (affine.getHasZeros())
    cpu::packLinearScales(format, linear, 1, zeros.data(), asSpan(to[2]));
}

/// PanelsAttr::repack without outliers, to the arrays.
static bool repackArrays(PanelsAttr panels, ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
                         ArrayRef<MutableArrayRef<char>> arrays) {
  if (panels.getNm())
    return repackSparse(panels, shape, source, from, arrays);
  if (CodebookAttr codebook = panels.getCodebook()) {
    if (source != codebook)
      return false;
    repackCodebook(codebook, shape, from, arrays);
    return true;
  }
  if (AffineAttr affine = panels.getAffine()) {
    if (source != affine)
      return false;
    packCodes(panels, shape, from[0], arrays[0]);
    packGroups(panels, shape, from, arrays);
    return true;
  }
  auto stored = dyn_cast_or_null<StoredAttr>(source);
  if (!stored || stored.getType() != getFloat(panels))
    return false;
  cpu::WeightView view{from[0].data(), stored.getTransposed() ? 1 : shape[1], stored.getTransposed() ? shape[0] : 1};
  cpu::packLinearWeight(getFormat(panels), getLinearShape(panels, shape), view, asSpan(arrays[0]));
  return true;
}

bool PanelsAttr::repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
                        ArrayRef<MutableArrayRef<char>> planes) const {
  if (DenseSparseAttr sparse = getSparse()) {
    constexpr int64_t count = DenseSparseAttr::kSparsePlanes;
    if (source != sparse)
      return false;
    for (auto [bytes, plane] : llvm::zip_equal(from.take_front(count), planes.take_front(count)))
      llvm::copy(bytes, plane.begin());
    return getBase(*this).repack(shape, sparse.getBase(), from.drop_front(count), planes.drop_front(count));
  }
  SmallVector<EncodingPlane> arrays = getArrays(*this, shape);
  if (arrays.size() == 1)
    return repackArrays(*this, shape, source, from, planes);
  PanelBlocks blocks(arrays);
  if (!repackArrays(*this, shape, source, from, blocks.allocate()))
    return false;
  blocks.join(planes[0]);
  return true;
}

LogicalResult PanelsAttr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                               ArrayRef<MutableArrayRef<char>> planes,
                               llvm::function_ref<InFlightDiagnostic()> emitError) const {
  EncodingInterface source = dyn_cast<EncodingInterface>(getElements());
  if (!source && elementType == getFloat(*this)) {
    repack(shape, StoredAttr::get(getFloat(*this)), dense, planes);
    return success();
  }
  if (!source)
    source = StoredAttr::get(getFloat(*this));
  SmallVector<SmallVector<char, 0>> rounded;
  SmallVector<MutableArrayRef<char>> buffers;
  for (const EncodingPlane &plane : source.getPlanes(shape, elementType))
    rounded.emplace_back().resize_for_overwrite(getDenseBytes(plane.type).value_or(0));
  for (SmallVector<char, 0> &plane : rounded)
    buffers.push_back(plane);
  if (failed(source.pack(shape, elementType, dense, buffers, emitError)))
    return failure();
  repack(shape, source, SmallVector<ArrayRef<char>>(buffers.begin(), buffers.end()), planes);
  return success();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

PackedScales::PackedScales(PanelsAttr panels, ArrayRef<int64_t> shape, ArrayRef<ArrayRef<char>> groups)
    : affine(panels.getAffine()), groups(groups), middle(cpu::bitLayoutOf(getFormat(panels))->middle()),
      groupsOfPanel(cpu::packedScaleShape(getFormat(panels), getLinearShape(panels, shape))[1]) {}

float PackedScales::apply(int64_t code, int64_t row, int64_t column) const {
  int64_t group = affine.getGroup() ? column / affine.getGroup() : 0;
  int64_t at = (row / cpu::kPanelOutputs * groupsOfPanel + group) * cpu::kPanelOutputs + row % cpu::kPanelOutputs;
  int64_t zero = affine.getHasZeros() ? static_cast<uint8_t>(groups[1][at]) : middle;
  return static_cast<float>(code - zero) * PlainElements(affine.getScales()).load(groups[0], at);
}

namespace {
/// The numbers in the bytes of planes.
class PanelReader {
public:
  PanelReader(PanelsAttr panels, ArrayRef<int64_t> shape, ArrayRef<EncodingPlane> types,
              ArrayRef<ArrayRef<char>> planes)
      : planes(planes), affine(panels.getAffine()), codes(cpu::bitLayoutOf(getFormat(panels))),
        lines(types[0].type.getDimSize(1)), elements(types[0].type.getDimSize(3)),
        floats(affine ? affine.getScales() : getFloat(panels)) {
    if (affine)
      scales.emplace(panels, shape, planes.drop_front());
  }

  float load(int64_t n, int64_t k) const {
    int64_t panel = n / cpu::kPanelOutputs, output = n % cpu::kPanelOutputs;
    if (!affine)
      return floats.load(planes[0], placeOf(panel, k / elements, output) + k % elements);
    return scales->apply(loadCode(panel, k, output), n, k);
  }

private:
  int64_t placeOf(int64_t panel, int64_t line, int64_t output) const {
    return ((panel * lines + line) * cpu::kPanelOutputs + output) * elements;
  }
  int64_t loadCode(int64_t panel, int64_t k, int64_t output) const {
    int64_t first = k / codes->inputs() * codes->lines, code = 0;
    for (const cpu::BitField &part : codes->parts[k % codes->inputs() / 4]) {
      auto byte = static_cast<uint8_t>(planes[0][placeOf(panel, first + part.line, output) + k % 4]);
      code |= (byte >> part.shift & ((1 << part.bits) - 1)) << part.to;
    }
    return code;
  }

  ArrayRef<ArrayRef<char>> planes;
  AffineAttr affine;
  const cpu::BitLayout *codes;
  int64_t lines, elements;
  PlainElements floats;
  std::optional<PackedScales> scales;
};
} // namespace

void PanelsAttr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                        MutableArrayRef<char> dense) const {
  if (DenseSparseAttr sparse = getSparse()) {
    getBase(*this).unpack(shape, elementType, planes.drop_front(DenseSparseAttr::kSparsePlanes), dense);
    return sparse.placeOutliers(shape, elementType, planes, dense);
  }
  SmallVector<EncodingPlane> types = getArrays(*this, shape);
  PanelBlocks blocks(types);
  SmallVector<ArrayRef<char>> arrays(planes);
  if (types.size() > 1)
    arrays = blocks.divide(planes[0]);
  if (getNm())
    return unpackSparse(*this, shape, elementType, arrays, dense);
  if (getCodebook())
    return unpackCodebook(getCodebook(), shape, elementType, arrays, dense);
  PanelReader from(*this, shape, types, arrays);
  PlainElements to(elementType);
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t k = 0; k < shape[1]; ++k)
      to.store(dense, n * shape[1] + k, from.load(n, k));
}

Value IndexBuilder::half(Value byte, Value isHigh) {
  Value shift = arith::IndexCastOp::create(builder, loc, byte.getType(), multiply(isHigh, 4));
  Value mask = arith::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(0xf));
  return arith::AndIOp::create(builder, loc, arith::ShRUIOp::create(builder, loc, byte, shift), mask);
}

Value IndexBuilder::pick(Value quad, ArrayRef<int32_t> numbers, Type type) {
  auto number = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, static_cast<int8_t>(value)));
  };
  Value picked = number(numbers.front());
  if (llvm::all_equal(numbers))
    return picked;
  for (auto [i, value] : llvm::enumerate(numbers.drop_front())) {
    Value isThis = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, quad, constant(i + 1));
    picked = arith::SelectOp::create(builder, loc, isThis, number(value), picked);
  }
  return picked;
}

Value IndexBuilder::code(const cpu::BitLayout &codes, Value quad, function_ref<Value(Value)> read) {
  Value code;
  for (int part = 0; part < 2; ++part) {
    auto pickOf = [&](Type type, function_ref<int32_t(const cpu::BitField &)> getNumber) {
      SmallVector<int32_t> numbers;
      for (const auto &parts : ArrayRef(codes.parts).take_front(codes.quads))
        numbers.push_back(getNumber(parts[part]));
      return pick(quad, numbers, type);
    };
    Type byte = builder.getI8Type();
    Value mask = pickOf(byte, [](const cpu::BitField &of) { return ((1 << of.bits) - 1) << of.to; });
    if (part > 0 && matchPattern(mask, m_Zero()))
      break;
    Value bits = read(pickOf(builder.getIndexType(), [](const cpu::BitField &of) { return of.line; }));
    bits = builder.createOrFold<arith::ShRUIOp>(loc, bits,
                                                pickOf(byte, [](const cpu::BitField &of) { return of.shift - of.to; }));
    bits = builder.createOrFold<arith::AndIOp>(loc, bits, mask);
    code = code ? arith::OrIOp::create(builder, loc, code, bits) : bits;
  }
  return code;
}

Value IndexBuilder::code(const cpu::BitLayout &codes, Value plane, Value panel, Value input, Value output) {
  Value quad = divide(remainder(input, codes.inputs()), 4), column = remainder(input, 4);
  Value first = multiply(divide(input, codes.inputs()), codes.lines);
  return code(codes, quad, [&](Value line) { return extract(plane, {panel, add(first, line), output, column}); });
}

Value buildScaled(OpBuilder &builder, Location loc, PanelsAttr panels, Value code, ValueRange groups,
                  ValueRange indices) {
  IndexBuilder b(builder, loc);
  AffineAttr affine = panels.getAffine();
  SmallVector<Value> at{b.divide(indices[0], cpu::kPanelOutputs),
                        affine.getGroup() ? b.divide(indices[1], affine.getGroup()) : b.constant(0),
                        b.remainder(indices[0], cpu::kPanelOutputs)};
  Value zero = affine.getHasZeros() ? b.number(b.extract(groups[1], at))
                                    : b.number(cpu::bitLayoutOf(getFormat(panels))->middle());
  Value scale = b.extract(groups[0], at);
  if (!affine.getScales().isF32())
    scale = arith::ExtFOp::create(builder, loc, builder.getF32Type(), scale);
  Value number = arith::SubFOp::create(builder, loc, b.number(code), zero);
  return arith::MulFOp::create(builder, loc, number, scale);
}

Value PanelsAttr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                               ValueRange indices) const {
  if (getNm())
    return buildSparseElement(builder, loc, *this, elementType, planes, indices);
  if (DenseSparseAttr sparse = getSparse()) {
    Value element = getBase(*this).buildElement(builder, loc, builder.getF32Type(),
                                                planes.drop_front(DenseSparseAttr::kSparsePlanes), indices);
    return sparse.buildChoice(builder, loc, elementType, planes, indices, element);
  }
  if (getCodebook())
    return buildCodebookElement(builder, loc, getCodebook(), elementType, planes, indices);
  IndexBuilder b(builder, loc);
  Value panel = b.divide(indices[0], cpu::kPanelOutputs), output = b.remainder(indices[0], cpu::kPanelOutputs);
  if (getAffine()) {
    Value code = b.code(*cpu::bitLayoutOf(getFormat(*this)), planes[0], panel, indices[1], output);
    return buildScaled(builder, loc, *this, code, planes.drop_front(), indices);
  }
  int64_t elements = cast<RankedTensorType>(planes[0].getType()).getDimSize(3);
  Value line = b.divide(indices[1], elements), place = b.remainder(indices[1], elements);
  Value element = b.extract(planes[0], {panel, line, output, place});
  return element.getType() == elementType ? element : arith::ExtFOp::create(builder, loc, elementType, element);
}

ActivationRounding PanelsAttr::getActivationRounding() const {
  AffineAttr affine = getAffine();
  return affine ? affine.getActivationRounding() : ActivationRounding();
}

std::string PanelsAttr::getKernelSuffix() const {
  if (getSparse())
    return "outliers." + getBase(*this).getKernelSuffix();
  if (getCodebook())
    return "codebook.u" + std::to_string(getCodebook().getBits());
  switch (getFormat(*this)) {
  case cpu::PackedFormat::F32:
    return "f32";
  case cpu::PackedFormat::F16:
    return "f16";
  case cpu::PackedFormat::Bf16:
    return "bf16";
  case cpu::PackedFormat::U8:
    return "u8";
  case cpu::PackedFormat::U4:
    return "u4";
  case cpu::PackedFormat::U3:
    return "u3";
  case cpu::PackedFormat::U2:
    return "u2";
  }
  llvm_unreachable("a format that the enum does not have");
}

} // namespace hone::hrt
