// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How elements lie in panels: a PanelLayout for each kind of them, and what these have in common.

#ifndef HONE_LIB_DIALECT_HRT_PANELS_H
#define HONE_LIB_DIALECT_HRT_PANELS_H

#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/cpu/packing/pack_linear.h"
#include "hone/cpu/packing/panel_block.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <memory>
#include <span>

namespace hone::hrt {

inline std::span<uint8_t> asSpan(llvm::MutableArrayRef<char> plane) {
  return {reinterpret_cast<uint8_t *>(plane.data()), plane.size()};
}

/// How elements of one kind lie in panels of 16 outputs. `shape` is that of the weight, [outputs, inputs]; `arrays` are what it is
/// without outliers, each with a panel's part in one piece.
class PanelLayout {
public:
  virtual ~PanelLayout() = default;

  virtual llvm::SmallVector<EncodingPlane> getArrays(llvm::ArrayRef<int64_t> shape) const = 0;
  /// As EncodingInterface::repack: false, having written nothing, where `source` does not store the same elements.
  virtual bool repack(llvm::ArrayRef<int64_t> shape, mlir::Attribute source, llvm::ArrayRef<llvm::ArrayRef<char>> from,
                      llvm::ArrayRef<llvm::MutableArrayRef<char>> arrays) const = 0;
  virtual void unpack(llvm::ArrayRef<int64_t> shape, mlir::Type elementType,
                      llvm::ArrayRef<llvm::ArrayRef<char>> arrays, llvm::MutableArrayRef<char> dense) const = 0;
  /// As EncodingInterface::buildElement, from values of the arrays.
  virtual mlir::Value buildElement(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type elementType,
                                   mlir::ValueRange arrays, mlir::ValueRange indices) const = 0;
  virtual std::string getKernelSuffix() const = 0;
};

/// The layout of `elements`, which `#hrt.panels` has; null where there is none.
std::unique_ptr<PanelLayout> getLayout(mlir::Attribute elements);

#define HONE_PANELS(make, what) std::unique_ptr<PanelLayout> make(mlir::Attribute elements);
#include "PanelLayouts.def"
#undef HONE_PANELS

/// The panels of the base of a weight with outliers, whose planes follow those of the outliers.
PanelsAttr getBase(PanelsAttr panels);

/// Several arrays as one plane, a panel block for each panel.
class PanelBlocks {
public:
  /// `arrays` outlives this.
  explicit PanelBlocks(llvm::ArrayRef<EncodingPlane> arrays);

  mlir::RankedTensorType getPlane() const;
  llvm::SmallVector<PlaneView> getViews() const;

  /// Memory for the arrays, one after the other.
  llvm::SmallVector<llvm::MutableArrayRef<char>> allocate();
  /// Writes what that memory holds to the plane.
  void join(llvm::MutableArrayRef<char> plane) const;
  /// The arrays of a plane, in that memory.
  llvm::SmallVector<llvm::ArrayRef<char>> divide(llvm::ArrayRef<char> plane);

private:
  int64_t getCount() const;

  llvm::ArrayRef<EncodingPlane> arrays;
  llvm::SmallVector<int64_t> panelBytes;
  cpu::PanelBlock block;
  llvm::SmallVector<llvm::SmallVector<char, 0>> memory;
};

//===----------------------------------------------------------------------===//
// Floats and `#hone.affine`, which are also what `#hone.nm` keeps
//===----------------------------------------------------------------------===//

/// How elements of this type, an attribute of floats or a `#hone.affine`, are packed.
cpu::PackedFormat getFormat(mlir::Attribute elements);
cpu::LinearShape getLinearShape(AffineAttr affine, llvm::ArrayRef<int64_t> shape);

/// Arrays of scales and zero points; none where `affine` is null.
llvm::SmallVector<EncodingPlane> getGroupPlanes(AffineAttr affine, llvm::ArrayRef<int64_t> shape);

/// Packs the planes of scales and zero points of a `#hone.affine`, the second and third of `from`, into the second and third of `to`.
void packGroups(AffineAttr affine, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<llvm::ArrayRef<char>> from,
                llvm::ArrayRef<llvm::MutableArrayRef<char>> to);

/// The numbers that codes of a packed `#hone.affine` mean, by its packed arrays of scales and zero points.
class PackedScales {
public:
  PackedScales(AffineAttr affine, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<llvm::ArrayRef<char>> groups);

  float apply(int64_t code, int64_t row, int64_t column) const;

private:
  AffineAttr affine;
  llvm::ArrayRef<llvm::ArrayRef<char>> groups;
  int64_t middle, groupsOfPanel;
};

/// The same in IR.
mlir::Value buildScaled(mlir::OpBuilder &builder, mlir::Location loc, AffineAttr affine, mlir::Value code,
                        mlir::ValueRange groups, mlir::ValueRange indices);

/// Builds IR on indices.
class IndexBuilder {
public:
  IndexBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value constant(int64_t value) { return mlir::arith::ConstantIndexOp::create(builder, loc, value); }
  mlir::Value divide(mlir::Value value, int64_t by) {
    return mlir::arith::DivUIOp::create(builder, loc, value, constant(by));
  }
  mlir::Value remainder(mlir::Value value, int64_t by) {
    return mlir::arith::RemUIOp::create(builder, loc, value, constant(by));
  }
  mlir::Value add(mlir::Value value, mlir::Value other) {
    return mlir::arith::AddIOp::create(builder, loc, value, other);
  }
  mlir::Value multiply(mlir::Value value, int64_t by) {
    return mlir::arith::MulIOp::create(builder, loc, value, constant(by));
  }
  mlir::Value extract(mlir::Value tensor, mlir::ValueRange place) {
    return mlir::tensor::ExtractOp::create(builder, loc, tensor, place);
  }
  mlir::Value number(mlir::Value code) {
    return mlir::arith::UIToFPOp::create(builder, loc, builder.getF32Type(), code);
  }
  mlir::Value number(int64_t code) {
    return mlir::arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(static_cast<float>(code)));
  }
  /// The low four bits of `byte`, or where `isHigh` is 1 its high ones.
  mlir::Value half(mlir::Value byte, mlir::Value isHigh);
  /// The number of quad `quad` of `numbers`, as an index or a byte.
  mlir::Value pick(mlir::Value quad, llvm::ArrayRef<int32_t> numbers, mlir::Type type);
  /// The code of quad `quad` of a step, whose byte in line `line` of the step `read(line)` gives.
  mlir::Value code(const cpu::BitLayout &codes, mlir::Value quad, llvm::function_ref<mlir::Value(mlir::Value)> read);
  /// The code of input `input` in a plane of panels.
  mlir::Value code(const cpu::BitLayout &codes, mlir::Value plane, mlir::Value panel, mlir::Value input,
                   mlir::Value output);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace hone::hrt

#endif // HONE_LIB_DIALECT_HRT_PANELS_H
