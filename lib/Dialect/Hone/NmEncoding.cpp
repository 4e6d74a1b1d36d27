//===- NmEncoding.cpp - n of every m inputs -----------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hone.nm: elements move between the plane of the whole matrix and that of the kept ones as bits, so nothing is rounded twice.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/Support/Parallel.h"

#include <cstring>
#include <mutex>
#include <type_traits>

using namespace mlir;
using namespace hone;

//===- The attribute ----------------------------------------------------------------------------------------------===//

Attribute NmAttr::parse(AsmParser &parser, Type) {
  int64_t n, m;
  Attribute of;
  if (parser.parseLess() || parser.parseInteger(n) || parser.parseColon() || parser.parseInteger(m) ||
      parser.parseComma() || parser.parseKeyword("of") || parser.parseEqual() || parser.parseAttribute(of) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<NmAttr>(n, m, of);
}

void NmAttr::print(AsmPrinter &printer) const {
  printer << "<" << getN() << ":" << getM() << ", of = " << getOf() << ">";
}

bool NmAttr::canKeep(Attribute of) {
  if (auto affine = dyn_cast<AffineAttr>(of))
    return !affine.getTransposed() && 8 % affine.getBits() == 0;
  auto type = dyn_cast<TypeAttr>(of);
  return type && isa<Float32Type, Float16Type, BFloat16Type>(type.getValue());
}

LogicalResult NmAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t n, int64_t m, Attribute of) {
  if (!llvm::is_contained({2, 4, 8, 16}, m) || n < 1 || n >= m) // nm C1
    return emitError() << "expected n of m inputs to be 1 to m - 1 of 2, 4, 8 or 16, but got " << n << " of " << m;
  if (!canKeep(of)) // nm C2
    return emitError() << "unsupported encoding of kept elements " << of
                       << "; supported: f32, f16, bf16, #hone.affine of 2, 4 or 8 bits that is not transposed";
  return success();
}

EncodingInterface NmAttr::getWhole() const {
  if (AffineAttr affine = getAffine())
    return affine;
  return StoredAttr::get(cast<FloatType>(cast<TypeAttr>(getOf()).getValue()));
}

LogicalResult NmAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                     llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 2) // nm C3
    return emitError() << "expected a tensor of which n of m inputs are stored to have 2 dimensions, but got "
                       << shape.size();
  if (failed(getWhole().verifyEncoding(shape, elementType, emitError)))
    return failure();
  if (ShapedType::isStatic(shape[1]) && shape[1] % getM() != 0) // nm C4
    return emitError() << "expected the number of inputs to be a multiple of " << getM() << ", but got " << shape[1];
  return success();
}

/// Codes of `bits` bits fill bytes from the lowest bits on; as many as fit.
static constexpr int64_t perByte(int64_t bits) { return 8 / bits; }

static int64_t getIndexBits(NmAttr nm) { return llvm::Log2_64(nm.getM()); }

SmallVector<EncodingPlane> NmAttr::getPlanes(ArrayRef<int64_t> shape, Type elementType) const {
  auto byte = IntegerType::get(getContext(), 8);
  SmallVector<EncodingPlane> planes = getWhole().getPlanes(shape, elementType);
  int64_t kept = shape[1] / getM() * getN(), width = kept;
  if (AffineAttr affine = getAffine())
    width = llvm::divideCeil(kept, perByte(affine.getBits()));
  planes[0].type = RankedTensorType::get({shape[0], width}, planes[0].type.getElementType());
  auto indices = RankedTensorType::get({shape[0], int64_t(llvm::divideCeil(kept, perByte(getIndexBits(*this))))}, byte);
  planes.insert(planes.begin() + 1, {"indices", indices});
  return planes;
}

//===- Elements as bits -------------------------------------------------------------------------------------------===//

namespace {
/// Elements of up to 32 bits, or so many of them in a byte as fit.
class BitPlane {
public:
  /// Of rows that lie one after the other, `bytes` in all.
  static BitPlane ofRows(int64_t bits, int64_t rows, int64_t bytes) {
    return {bits, bytes / std::max<int64_t>(rows, 1), std::max<int64_t>(bits / 8, 1)};
  }
  /// Of columns that do.
  static BitPlane ofColumns(int64_t bits, int64_t rows) { return {bits, bits / 8, rows * bits / 8}; }

  template <typename Element>
  void loadRow(ArrayRef<char> plane, int64_t row, MutableArrayRef<Element> elements) const {
    const char *from = plane.data() + row * rowBytes;
    withBits([&](auto known) {
      for (int64_t column = 0, count = elements.size(); column < count; ++column)
        elements[column] = static_cast<Element>(load<known>(from, column));
    });
  }

  /// Where elements share bytes, into a plane whose bytes were 0.
  template <typename Element>
  void storeRow(MutableArrayRef<char> plane, int64_t row, ArrayRef<Element> elements) const {
    char *to = plane.data() + row * rowBytes;
    withBits([&](auto known) {
      for (int64_t column = 0, count = elements.size(); column < count; ++column)
        store<known>(to, column, elements[column]);
    });
  }

private:
  BitPlane(int64_t bits, int64_t rowBytes, int64_t columnBytes)
      : bits(bits), rowBytes(rowBytes), columnBytes(columnBytes) {}

  /// Calls `body` with the bits of an element as a constant.
  template <int BITS = 32, typename Body> void withBits(const Body &body) const {
    if constexpr (BITS > 1)
      if (bits < BITS)
        return withBits<(BITS > 4 ? BITS / 2 : BITS - 1)>(body);
    body(std::integral_constant<int, BITS>());
  }

  template <int BITS> uint32_t load(const char *from, int64_t column) const {
    uint32_t element = 0;
    if constexpr (BITS >= 8) {
      std::memcpy(&element, from + column * columnBytes, BITS / 8);
      return element;
    }
    element = static_cast<uint8_t>(from[column / perByte(BITS)]);
    return element >> column % perByte(BITS) * BITS & ((1u << BITS) - 1);
  }
  template <int BITS> void store(char *to, int64_t column, uint32_t element) const {
    if constexpr (BITS >= 8) {
      std::memcpy(to + column * columnBytes, &element, BITS / 8);
    } else {
      char &byte = to[column / perByte(BITS)];
      byte = static_cast<char>(byte | element << column % perByte(BITS) * BITS);
    }
  }

  int64_t bits, rowBytes, columnBytes;
};

/// A matrix that is stored whole: the bits of its elements, and which bits are those of 0.
class WholeMatrix {
public:
  WholeMatrix(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> planes)
      : shape(shape), affine(dyn_cast_or_null<AffineAttr>(source)), planes(planes), bits(getBits(source)),
        elements(getElements(source)), zeroColumns(affine && affine.getGroup() ? affine.getGroup() : shape[1]) {}

  int64_t columns() const { return shape[1]; }
  void loadRow(int64_t row, MutableArrayRef<uint32_t> line) const { elements.loadRow(planes[0], row, line); }
  BitPlane ofKept(int64_t bytes) const { return BitPlane::ofRows(bits, shape[0], bytes); }

  /// Calls `body(first, end, zero)` for the columns of a row by the bits of their elements that are 0; of floats the sign does not
  /// count.
  template <typename Body> void forZeros(int64_t row, const Body &body) const {
    SmallVector<uint32_t> zeros(affine ? affine.getGroups(shape) : 1, affine ? affine.getMiddle() : 0);
    if (affine && affine.getHasZeros())
      BitPlane::ofRows(bits, shape[0], planes[2].size()).loadRow(planes[2], row, MutableArrayRef(zeros));
    for (int64_t first = 0, group = 0; first < shape[1]; first += zeroColumns, ++group)
      body(first, std::min(first + zeroColumns, shape[1]), zeros[group]);
  }

  /// The bits that say of an element whether it is 0.
  uint32_t valueBits() const { return affine ? ~0u : ~0u >> (33 - bits); }

private:
  static int64_t getBits(Attribute source) {
    if (auto affine = dyn_cast_or_null<AffineAttr>(source))
      return affine.getBits();
    auto stored = dyn_cast_or_null<StoredAttr>(source);
    return stored ? stored.getType().getIntOrFloatBitWidth() : 32;
  }
  BitPlane getElements(Attribute source) const {
    if (auto stored = dyn_cast_or_null<StoredAttr>(source); stored && stored.getTransposed())
      return BitPlane::ofColumns(bits, shape[0]);
    return BitPlane::ofRows(bits, shape[0], planes[0].size());
  }

  ArrayRef<int64_t> shape;
  AffineAttr affine;
  ArrayRef<ArrayRef<char>> planes;
  int64_t bits;
  BitPlane elements;
  int64_t zeroColumns; // that share what 0 is
};

/// A row of a matrix, and of each group of m inputs those n that are kept: a bit for each input.
class KeptRow {
public:
  KeptRow(NmAttr nm, const WholeMatrix &whole)
      : n(nm.getN()), m(nm.getM()), whole(whole), line(whole.columns()), isSet(whole.columns()), kept(line.size() / m) {
  }

  /// The first group more than n of which are not 0, or nothing. The first zeros are kept where fewer are.
  std::optional<int64_t> choose(int64_t row) {
    whole.loadRow(row, line);
    uint32_t bits = whole.valueBits();
    whole.forZeros(row, [&](int64_t first, int64_t end, uint32_t zero) {
      for (int64_t column = first; column < end; ++column)
        isSet[column] = ((line[column] ^ zero) & bits) != 0;
    });
    for (auto [group, mask] : llvm::enumerate(kept)) {
      mask = 0;
      for (int64_t i = 0; i < m; ++i)
        mask |= static_cast<uint32_t>(isSet[group * m + i]) << i;
      int64_t spare = n - llvm::popcount(mask);
      if (spare < 0)
        return group;
      for (; spare > 0; --spare)
        mask |= mask + 1;
    }
    return std::nullopt;
  }

  /// Calls `body(place, element, index)` for each kept element of the row that was chosen from.
  template <typename Body> void forKept(const Body &body) const {
    int64_t place = 0;
    for (auto [group, mask] : llvm::enumerate(kept))
      for (uint32_t left = mask; left; left &= left - 1) {
        int64_t index = llvm::countr_zero(left);
        body(place++, line[group * m + index], static_cast<uint8_t>(index));
      }
  }

private:
  int64_t n, m;
  const WholeMatrix &whole;
  SmallVector<uint32_t> line;
  SmallVector<uint8_t> isSet;
  SmallVector<uint32_t> kept;
};
} // namespace

/// Rows that a task takes: fewer would mostly be buffers.
static constexpr int64_t kTaskRows = 64;

/// Calls `body(first, end)` for ranges of `rows` rows, in parallel.
static void forRows(int64_t rows, llvm::function_ref<void(int64_t, int64_t)> body) {
  llvm::parallelFor(0, llvm::divideCeil(rows, kTaskRows),
                    [&](int64_t task) { body(task * kTaskRows, std::min((task + 1) * kTaskRows, rows)); });
}

std::optional<std::pair<int64_t, int64_t>> NmAttr::findMisfit(ArrayRef<int64_t> shape, Attribute source,
                                                              ArrayRef<ArrayRef<char>> planes) const {
  WholeMatrix whole(shape, source, planes);
  std::mutex mutex;
  std::optional<std::pair<int64_t, int64_t>> misfit;
  forRows(shape[0], [&](int64_t first, int64_t end) {
    KeptRow kept(*this, whole);
    for (int64_t row = first; row < end; ++row)
      if (std::optional<int64_t> group = kept.choose(row)) {
        std::lock_guard lock(mutex);
        if (!misfit || row < misfit->first)
          misfit = {row, *group};
        return;
      }
  });
  return misfit;
}

void NmAttr::loadIndices(ArrayRef<char> plane, int64_t rows, int64_t row, MutableArrayRef<uint8_t> indices) const {
  BitPlane::ofRows(getIndexBits(*this), rows, plane.size()).loadRow(plane, row, indices);
}

//===- Packing ----------------------------------------------------------------------------------------------------===//

bool NmAttr::isStoredAs(Attribute source) const {
  if (getAffine())
    return source == getOf();
  auto type = cast<TypeAttr>(getOf()).getValue();
  auto stored = dyn_cast_or_null<StoredAttr>(source);
  return source ? stored && stored.getType() == type : type.isF32();
}

bool NmAttr::repack(ArrayRef<int64_t> shape, Attribute source, ArrayRef<ArrayRef<char>> from,
                    ArrayRef<MutableArrayRef<char>> planes) const {
  if (!isStoredAs(source) || findMisfit(shape, source, from))
    return false;
  WholeMatrix whole(shape, source, from);
  BitPlane values = whole.ofKept(planes[0].size());
  BitPlane indices = BitPlane::ofRows(getIndexBits(*this), shape[0], planes[1].size());
  llvm::fill(planes[0], 0);
  llvm::fill(planes[1], 0);
  forRows(shape[0], [&](int64_t first, int64_t end) {
    KeptRow kept(*this, whole);
    SmallVector<uint32_t> elements(shape[1] / getM() * getN());
    SmallVector<uint8_t> places(elements.size());
    for (int64_t row = first; row < end; ++row) {
      kept.choose(row);
      kept.forKept([&](int64_t place, uint32_t element, uint8_t index) {
        elements[place] = element;
        places[place] = index;
      });
      values.storeRow(planes[0], row, ArrayRef(elements));
      indices.storeRow(planes[1], row, ArrayRef(places));
    }
  });
  for (auto [plane, bytes] : llvm::zip_equal(planes.drop_front(2), from.drop_front()))
    llvm::copy(bytes, plane.begin());
  return true;
}

/// Memory for the planes of a matrix that `encoding` stores.
static SmallVector<SmallVector<char, 0>> makePlanes(EncodingInterface encoding, ArrayRef<int64_t> shape,
                                                    Type elementType) {
  SmallVector<SmallVector<char, 0>> planes;
  for (const EncodingPlane &plane : encoding.getPlanes(shape, elementType))
    planes.emplace_back().resize(getDenseBytes(plane.type).value_or(0));
  return planes;
}

LogicalResult NmAttr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                           ArrayRef<MutableArrayRef<char>> planes,
                           llvm::function_ref<InFlightDiagnostic()> emitError) const {
  EncodingInterface whole = getWhole();
  SmallVector<SmallVector<char, 0>> rounded = makePlanes(whole, shape, elementType);
  if (failed(whole.pack(shape, elementType, dense, SmallVector<MutableArrayRef<char>>(rounded.begin(), rounded.end()),
                        emitError)))
    return failure();
  SmallVector<ArrayRef<char>> from(rounded.begin(), rounded.end());
  if (repack(shape, whole, from, planes))
    return success();
  auto [row, group] = *findMisfit(shape, whole, from);
  return emitError() << "expected at most " << getN() << " of every " << getM()
                     << " inputs not to be 0, but got more in row " << row << ", inputs " << group * getM() << " to "
                     << (group + 1) * getM() - 1;
}

void NmAttr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                    MutableArrayRef<char> dense) const {
  EncodingInterface encoding = getWhole();
  SmallVector<SmallVector<char, 0>> unpacked = makePlanes(encoding, shape, elementType);
  for (auto [plane, bytes] : llvm::zip_equal(llvm::drop_begin(unpacked), planes.drop_front(2)))
    llvm::copy(bytes, plane.begin());
  SmallVector<ArrayRef<char>> views(unpacked.begin(), unpacked.end());
  WholeMatrix whole(shape, encoding, views);
  BitPlane elements = whole.ofKept(unpacked[0].size()), values = whole.ofKept(planes[0].size());
  forRows(shape[0], [&](int64_t first, int64_t end) {
    SmallVector<uint8_t> indices(shape[1] / getM() * getN());
    SmallVector<uint32_t> line(shape[1]), kept(indices.size());
    for (int64_t row = first; row < end; ++row) {
      loadIndices(planes[1], shape[0], row, indices);
      values.loadRow(planes[0], row, MutableArrayRef(kept));
      whole.forZeros(row, [&](int64_t from, int64_t to, uint32_t zero) {
        std::fill(line.begin() + from, line.begin() + to, zero);
      });
      for (auto [place, index] : llvm::enumerate(indices))
        line[place / getN() * getM() + index] = kept[place];
      elements.storeRow(unpacked[0], row, ArrayRef(line));
    }
  });
  encoding.unpack(shape, elementType, views, dense);
}

//===- IR ---------------------------------------------------------------------------------------------------------===//

namespace {
/// Builds IR on indices.
struct IndexBuilder {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value divide(Value value, int64_t by) { return arith::DivUIOp::create(b, loc, value, constant(by)); }
  Value remainder(Value value, int64_t by) { return arith::RemUIOp::create(b, loc, value, constant(by)); }
  Value add(Value value, int64_t other) { return arith::AddIOp::create(b, loc, value, constant(other)); }
  Value scale(Value value, int64_t by) { return arith::MulIOp::create(b, loc, value, constant(by)); }

  /// Element `place` of row `row` in a plane of elements of less than eight bits, as an index.
  Value readBits(Value plane, Value row, Value place, int64_t bits) {
    Value byte = tensor::ExtractOp::create(b, loc, plane, ValueRange{row, divide(place, perByte(bits))});
    byte = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), byte);
    Value down = arith::ShRUIOp::create(b, loc, byte, scale(remainder(place, perByte(bits)), bits));
    return arith::AndIOp::create(b, loc, down, constant((int64_t(1) << bits) - 1));
  }
};
} // namespace

/// Element `kept` of row `row` of the plane of values, which belongs to input `column`.
static Value buildKept(NmAttr nm, IndexBuilder at, Type elementType, ValueRange planes, Value row, Value kept,
                       Value column) {
  OpBuilder &b = at.b;
  AffineAttr affine = nm.getAffine();
  if (!affine)
    return nm.getWhole().buildElement(b, at.loc, elementType, planes.take_front(), {row, kept});
  // Codes without groups are read as they lie; their scale and zero point are those of the input's group.
  SmallVector<Value> whole{planes[0]};
  llvm::append_range(whole, planes.drop_front(2));
  return affine.buildCode(b, at.loc, elementType, whole, row, kept, column);
}

Value NmAttr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                           ValueRange indices) const {
  IndexBuilder b{builder, loc};
  Value row = indices[0], column = indices[1];
  Value first = b.scale(b.divide(column, getM()), getN()), place = b.remainder(column, getM());
  Value element = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(elementType, 0.0));
  for (int64_t i = 0; i < getN(); ++i) {
    Value kept = b.add(first, i);
    Value index = b.readBits(planes[1], row, kept, getIndexBits(*this));
    Value isIt = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, index, place);
    Value value = buildKept(*this, b, elementType, planes, row, kept, column);
    element = arith::SelectOp::create(builder, loc, isIt, value, element);
  }
  return element;
}

ActivationRounding NmAttr::getActivationRounding() const { return getWhole().getActivationRounding(); }

std::string NmAttr::getKernelSuffix() const {
  return getWhole().getKernelSuffix() + "_" + std::to_string(getN()) + "of" + std::to_string(getM());
}
