//===- HoneEncodings.td - how and where weights are stored ---------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Encodings say how the elements of a weight are laid out in bytes, or those of a slot of the state; `#hone.external` says where the
// bytes are.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_ENCODINGS_TD
#define HONE_ENCODINGS_TD

include "mlir/IR/AttrTypeBase.td"
include "Hone/HoneDialect.td"
include "Hone/HoneInterfaces.td"

/// `overridden`: methods of the interface that have a default.
class Hone_Encoding<string name, string attrMnemonic, list<string> overridden = []> : AttrDef<Hone_Dialect, name, [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
    DeclareAttrInterfaceMethods<Hone_EncodingInterface, overridden>]> {
  let mnemonic = attrMnemonic;
}

def Hone_StoredAttr : Hone_Encoding<"Stored", "stored"> {
  let summary = "plain elements of another width or order";
  let description = [{
    *Meaning.* One plane `values` with every element converted to `type`, to nearest, ties to even. With `transposed`, the
    last two dimensions are swapped in memory, so that a matrix `tensor<NxKxf32>` that a file keeps as K rows of N is mapped
    as it is.

    *Constraints.*

    - C1. `type` is f32, f16 or bf16.
    - C2. The tensor's elements are of `type`, or f32.
    - C3. With `transposed`, the tensor has at least two dimensions.

    *Example.*
    ```mlir
    func.func private @weight() -> tensor<4864x896xf32, #hone.stored<bf16, transposed>>
    ```
  }];
  let parameters = (ins
    "::mlir::FloatType":$type,
    DefaultValuedParameter<"bool", "false">:$transposed);
  let builders = [AttrBuilderWithInferredContext<(ins "::mlir::FloatType":$type, CArg<"bool", "false">:$transposed), [{
    return $_get(type.getContext(), type, transposed);
  }]>];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Hone_AffineAttr : Hone_Encoding<"Affine", "affine", ["getActivationRounding"]> {
  let summary = "integers of few bits, with a scale and a zero point for each group of inputs";
  let description = [{
    *Meaning.* A matrix `[N, K]` with `element[n, k] = (code[n, k] - zero[n, g]) * scale[n, g]`, in f32, for the group
    g = k / `group`, or the only one, 0, of a row where `group` is 0. A code has `bits` bits: 0 … 2^bits - 1, or with
    `isSigned` -2^(bits-1) … 2^(bits-1) - 1. Planes:

    - `values`, `[N, bytes of a row]`: the codes of a row one after the other, as bits of its bytes from the lowest on, filled
      up to whole groups. Code k has bits `bits` · k … `bits` · (k + 1) - 1 of the row, bit b of which is bit b mod 8 of byte
      b / 8; codes of 3, 5 and 6 bits may begin in one byte and end in the next;
    - `scales`, `[N, groups]`, of type `scales`;
    - `zeros`, `[N, bytes of the groups]`, with `hasZeros`: codes laid out as those of `values`. Without it every zero point
      is the middle: 2^(bits-1), or 0 with `isSigned`.

    With `transposed` the two dimensions of every plane are swapped, and rows are not filled up.

    With `activations` a product rounds what it multiplies the matrix with to integers of so many bits: x[m, k] becomes
    `round(x[m, k] * f) * (a / most)`, f = most / a, most = 2^(activations-1) - 1, a = the largest magnitude among the x of
    row m and group k / `group`; where there are no groups, of the 512 inputs k / 512. Ties go to even. Where a is 0, so is f.
    With `atLeast` that is the least precision asked for: a kernel may multiply both sides rounded to floats of as many
    significant bits instead, whichever is quicker for its rows.

    Packing dense elements rounds to nearest. The step is the least that spans the group and 0 with zero points, and without
    them the element of largest magnitude divided by -2^(bits-1); it is rounded to the type of scales before it is used.

    *Constraints.*

    - C1. `bits` is 2, 3, 4, 5, 6 or 8.
    - C2. `group` is not negative, and its codes fill whole bytes.
    - C3. `scales` is f32 or f16.
    - C4. With `transposed`, `bits` is 8.
    - C5. `activations` is 0, which leaves them as they are, or 8.
    - C6. `activations` come with groups of at most 512.
    - C7. The tensor has 2 dimensions and elements of f32, f16 or bf16.
    - C8. `atLeast` comes with `activations`.

    *Example.*
    ```mlir
    func.func private @weight() -> tensor<4864x896xf32, #hone.affine<bits = 4, group = 64, scales = f16>>
    ```
  }];
  let parameters = (ins
    "int64_t":$bits,
    DefaultValuedParameter<"int64_t", "0">:$group,
    DefaultValuedParameter<"::mlir::FloatType", "::mlir::Float32Type::get($_ctxt)">:$scales,
    DefaultValuedParameter<"bool", "false">:$hasZeros,
    DefaultValuedParameter<"bool", "false">:$isSigned,
    DefaultValuedParameter<"bool", "false">:$transposed,
    DefaultValuedParameter<"int64_t", "0">:$activations,
    DefaultValuedParameter<"bool", "false">:$atLeast);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The numbers of bits that a code may have.
    static constexpr int64_t kWidths[] = {2, 3, 4, 5, 6, 8};
    /// How many groups a row of `[N, K]` has.
    int64_t getGroups(::llvm::ArrayRef<int64_t> shape) const;
    /// The code in the middle, which zero points are where there is no plane of them.
    int64_t getMiddle() const { return getIsSigned() ? 0 : int64_t(1) << (getBits() - 1); }
    /// What this says of centroids, for methods that round weights.
    ::hone::compress::AffineFormat getFormat() const;
    /// Writes codes [N, K], and scales [N, groups] with their zero points, into buffers of the planes of `shape`, [N, K].
    void packCodes(::llvm::ArrayRef<int64_t> shape, ::llvm::ArrayRef<int16_t> codes,
                    ::llvm::ArrayRef<::hone::compress::AffineScale> scales,
                    ::llvm::ArrayRef<::llvm::MutableArrayRef<char>> planes) const;
    /// The first codes of row `row` in the bytes of a plane of codes that has `rows` rows, counted from 0.
    void loadCodes(::llvm::ArrayRef<char> plane, int64_t rows, int64_t row, ::llvm::MutableArrayRef<uint8_t> codes) const;
    /// buildElement for input `column` where its code is the one at `place` of the row.
    ::mlir::Value buildCode(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Type elementType,
                             ::mlir::ValueRange planes, ::mlir::Value row, ::mlir::Value place, ::mlir::Value column) const;
  }];
}

def Hone_CodebookAttr : Hone_Encoding<"Codebook", "codebook"> {
  let summary = "indices of few bits into a codebook of centroids that each row has";
  let description = [{
    *Meaning.* A matrix `[N, K]` with `element[n, k] = codebook[n, index[n, k]]`: of 2^bits centroids that may lie anywhere. Planes:

    - `indices`, `[N, bytes of a row]`: those of a row one after the other, as codes of `#hone.affine` are;
    - `codebook`, `[N, 2^bits]`, of type `values`.

    Packing dense elements finds the centroids of a row that have the least sum of squared errors, rounds them to `values`, and gives
    each element the nearest. A row of no more than 2^bits different numbers of type `values` comes back as it was.

    *Constraints.*

    - C1. `bits` is 2, 3 or 4.
    - C2. `values` is f32, f16 or bf16.
    - C3. The tensor has 2 dimensions and elements of f32, f16 or bf16.

    *Example.*
    ```mlir
    func.func private @weight() -> tensor<4864x896xf32, #hone.codebook<bits = 4, values = f16>>
    ```
  }];
  let parameters = (ins
    "int64_t":$bits,
    DefaultValuedParameter<"::mlir::FloatType", "::mlir::BFloat16Type::get($_ctxt)">:$values);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What this says of numbers, for methods that round weights.
    ::hone::compress::CodebookFormat getFormat() const;
    /// Whether an index may have so many bits.
    static bool canHave(int64_t bits) { return bits >= 2 && bits <= 4; }
    /// Centroids of a row.
    int64_t getEntries() const { return int64_t(1) << getBits(); }
    /// Writes indices [N, K], and centroids [N, entries] that their type holds, into buffers of the planes of `shape`, [N, K].
    void packIndices(::llvm::ArrayRef<int64_t> shape, ::llvm::ArrayRef<uint8_t> indices, ::llvm::ArrayRef<float> codebook,
                     ::llvm::ArrayRef<::llvm::MutableArrayRef<char>> planes) const;
    /// The first indices of row `row` in the bytes of a plane of indices that has `rows` rows.
    void loadIndices(::llvm::ArrayRef<char> plane, int64_t rows, int64_t row, ::llvm::MutableArrayRef<uint8_t> indices) const;
  }];
}

def Hone_NmAttr : Hone_Encoding<"Nm", "nm", ["repack", "getActivationRounding"]> {
  let summary = "a matrix of which n of every m neighbouring inputs are stored, and the others are 0";
  let description = [{
    *Meaning.* A matrix `[N, K]` that the encoding `of` would store whole: f32, f16, bf16 or a `#hone.affine`, whose groups count
    inputs of the matrix. Of each m inputs of a row n are kept, in their order. Planes:

    - `values`, those of the kept elements as `of` stores them: `[N, K / m · n]` of floats, or `[N, bytes of a row]` of codes, the
      first of a byte in its lowest bits;
    - `indices`, `[N, bytes of a row]`: for each kept element which of its m inputs it is, in log2 m bits; the first of a byte in
      its lowest bits, and as many in a byte as fit;
    - the other planes of `of` as they are.

    Packing rounds the elements as `of` does, and keeps those that are not 0 then. Where a group has fewer, its first zeros are
    kept too; where it has more, packing fails.

    *Constraints.*

    - C1. m is 2, 4, 8 or 16, and n is 1 to m - 1.
    - C2. `of` is f32, f16, bf16, or a `#hone.affine` of 2, 4 or 8 bits that is not transposed.
    - C3. The tensor has 2 dimensions, and elements that `of` stores.
    - C4. K is a multiple of m.

    *Example.*
    ```mlir
    func.func private @floats() -> tensor<4864x896xf32, #hone.nm<2:4, of = bf16>>
    func.func private @codes() -> tensor<4864x896xf32, #hone.nm<2:4, of = #hone.affine<bits = 4, group = 64>>>
    ```
  }];
  let parameters = (ins "int64_t":$n, "int64_t":$m, "::mlir::Attribute":$of);
  let builders = [AttrBuilderWithInferredContext<(ins "int64_t":$n, "int64_t":$m, "::mlir::Attribute":$of), [{
    return $_get(of.getContext(), n, m, of);
  }]>];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The numbers that are kept, or null where elements are floats.
    ::hone::AffineAttr getAffine() const { return ::llvm::dyn_cast<::hone::AffineAttr>(getOf()); }
    /// Whether elements may be kept of what `of` says (C2).
    static bool canKeep(::mlir::Attribute of);
    /// The encoding that stores the whole matrix: `#hone.stored` where `of` is a type.
    ::hone::EncodingInterface getWhole() const;
    /// Whether what `source` (null: plain f32) stores can be repacked to this without rounding.
    bool isStoredAs(::mlir::Attribute source) const;
    /// Row and group of the first m elements more than n of which are not 0, or nothing; `planes` are those of a matrix of
    /// `shape` in the encoding `source`: null (plain f32), `#hone.stored`, or a `#hone.affine` that is not transposed.
    ::std::optional<::std::pair<int64_t, int64_t>> findMisfit(
        ::llvm::ArrayRef<int64_t> shape, ::mlir::Attribute source, ::llvm::ArrayRef<::llvm::ArrayRef<char>> planes) const;
    /// Which of its m inputs each kept element of row `row` is, by the plane of indices of a matrix that has `rows` rows.
    void loadIndices(::llvm::ArrayRef<char> plane, int64_t rows, int64_t row, ::llvm::MutableArrayRef<uint8_t> indices) const;
  }];
}

def Hone_DenseSparseAttr : Hone_Encoding<"DenseSparse", "dense_sparse", ["getActivationRounding"]> {
  let summary = "elements of few bits, and outliers in f16 (dense-and-sparse)";
  let description = [{
    *Meaning.* A matrix `[N, K]` with `element[n, k] = value`, in f32, where there is an outlier (n, k, value), and otherwise what `of`
    says. All rows of a panel of 16 have as many, by ascending column; each of the `outliers` / 16 slots holds one of each. Planes:

    - `starts`, `[ceil(N / 16) + 1]` of i32: the slots of panel p are numbers starts[p] … starts[p + 1] - 1;
    - `columns`, `[outliers / 16, 16]` of i16 without a sign, and `outliers`, as many of f16, number n % 16 of row n; 0 after row N;
    - the planes of `of`. Where there is an outlier, its code is the zero point of its group.

    A `#hone.codebook` need not have a 0: outliers of it are what is missing, and `element[n, k]` is what `of` says plus the value.
    So the matrix is the sum of a dense one and a sparse one, and a product is that of the two. Columns have 16 bits, half the
    bytes of 32: no layer of a transformer has more inputs than that. A product rounds activations as `of` says; the
    outliers may be multiplied with activations as they are.

    Packing dense elements fills the slots with the largest magnitudes: as many of each panel as have the largest sums, and of equal
    ones those that come first, rounded to nearest, ties to even. The others are packed as `of` does, with 0 for an outlier.

    *Constraints.*

    - C1. `of` is a `#hone.affine`, whose `activations` come with `atLeast`, or a `#hone.codebook`.
    - C2. `outliers` is a multiple of 16, at least 16, and less than 2^31.
    - C3. The tensor is as `of` asks, has at most 65536 columns, and its panels have as many elements as outliers at least.
    - C4. Elements of the tensor are f32 where `of` is a `#hone.codebook`.

    *Example.*
    ```mlir
    func.func private @weight() -> tensor<4864x896xf32, #hone.dense_sparse<of = #hone.affine<bits = 4, group = 64>, outliers = 21792>>
    ```
  }];
  let parameters = (ins "::mlir::Attribute":$of, "int64_t":$outliers);
  let builders = [AttrBuilderWithInferredContext<(ins "::mlir::Attribute":$of, "int64_t":$outliers), [{
    return $_get(of.getContext(), of, outliers);
  }]>];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Planes of the outliers; those of the base come after them.
    static constexpr int64_t kSparsePlanes = 3;

    /// What is beside the outliers: codes, or indices.
    ::hone::EncodingInterface getBase() const { return ::llvm::cast<::hone::EncodingInterface>(getOf()); }
    ::hone::AffineAttr getAffine() const { return ::llvm::dyn_cast<::hone::AffineAttr>(getOf()); }
    ::hone::CodebookAttr getCodebook() const { return ::llvm::dyn_cast<::hone::CodebookAttr>(getOf()); }
    /// Writes the planes of the outliers, which are as many as this says.
    void packOutliers(const ::hone::compress::SparseWeight &outliers,
                      ::llvm::ArrayRef<::llvm::MutableArrayRef<char>> planes) const;
    /// Writes what the planes of the outliers hold over elements of the base, or adds it.
    void placeOutliers(::llvm::ArrayRef<int64_t> shape, ::mlir::Type elementType,
                       ::llvm::ArrayRef<::llvm::ArrayRef<char>> planes, ::llvm::MutableArrayRef<char> dense) const;
    /// The element at `indices` as `elementType`, by that of the base as f32.
    ::mlir::Value buildChoice(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Type elementType,
                              ::mlir::ValueRange planes, ::mlir::ValueRange indices, ::mlir::Value element) const;
  }];
}

def Hone_QuantizedKvAttr : AttrDef<Hone_Dialect, "QuantizedKv", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "quantized_kv";
  let summary = "quantized KV: keys and values in 8 or 4 bits, each row with a scale of its own";
  let description = [{
    *Meaning.* A tensor that the state gives, whose rows along the last dimension were quantized when they were appended: a row of
    keys or values is a position of a KV head. Of a row x are stored codes l and, as bf16,

    - with 8 bits the scale s, the least that is no less than max |x| / 127: an element is s · l, with l in -127 … 127;
    - with 4 bits the base b, the largest that is no more than min x, and the scale s, the least that is no less than
      (max x - b) / 15: an element is b + s · l, with l in 0 … 15.

    Codes are rounded to nearest, ties to even. A row that has an infinity or no number becomes NaN.

    *Constraints.*

    - C1. `bits` is 4 or 8.
    - C2. The tensor has at least one dimension, and elements of f32.

    *Example.*
    ```mlir
    hone.state @kv [#hone.slot<"key", tensor<?x4x?x64xf32, #hone.quantized_kv<bits = 8>>, axis = 2>]
    ```
  }];
  let parameters = (ins "int64_t":$bits);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Hone_ExternalAttr : AttrDef<Hone_Dialect, "External"> {
  let mnemonic = "external";
  let summary = "bytes in a file on disk";
  let description = [{
    *Meaning.* `bytes` bytes at `offset` of the file `file`: dense, row-major, little-endian. The file is mapped when the
    bytes are needed and never copied into the IR. A relative name is looked up beside the file that holds the IR.

    *Constraints.*

    - C1. `file` is not empty.
    - C2. `offset` is not negative.
    - C3. `bytes` is not negative.

    *Example.*
    ```mlir
    hone.param @weight : tensor<2x3xf32> = #hone.external<"model.onnx_data", 4096, 24>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"name of the file">:$file,
    "int64_t":$offset,
    "int64_t":$bytes);
  let assemblyFormat = "`<` $file `,` $offset `,` $bytes `>`";
  let genVerifyDecl = 1;
}

def Hone_ConvertedAttr : AttrDef<Hone_Dialect, "Converted"> {
  let mnemonic = "converted";
  let summary = "the bytes of a parameter in another form";
  let description = [{
    *Meaning.* The tensor of type `type` whose bytes are `storage`, in the encoding of the parameter that has this as its
    storage. Bytes are converted when they are written, one parameter after another, and never kept.

    *Constraints.*

    - C1. `storage` is dense elements, a resource, `#hone.external`, `#hone.stacked`, or a dictionary of such from plane name to
      bytes.

    *Example.*
    ```mlir
    hone.param @lm_head : tensor<4x2xf32, #hone.stored<bf16>> = #hone.converted<tensor<4x2xf32> = #hone.external<"a.bin", 0, 32>>
    ```
  }];
  let parameters = (ins "::mlir::RankedTensorType":$type, "::mlir::Attribute":$storage);
  let assemblyFormat = "`<` $type `=` $storage `>`";
  let genVerifyDecl = 1;
}

def Hone_StackedAttr : AttrDef<Hone_Dialect, "Stacked"> {
  let mnemonic = "stacked";
  let summary = "the bytes of several tensors, one below the other";
  let description = [{
    *Meaning.* Tensors of type `type` whose bytes are `parts`, joined along their first dimension: plain elements, as many times
    the rows as there are parts. Bytes are joined when they are needed, and never kept.

    *Constraints.*

    - C1. `type` has a static shape of at least one dimension, and one plane of plain elements.
    - C2. There is a part, and each is dense elements or a resource of the plane's type, or a `#hone.external` of as many bytes.

    *Example.*
    ```mlir
    hone.param @up : tensor<8x2xf32> = #hone.stacked<tensor<4x2xf32> = [#hone.external<"a.bin", 64, 32>, #hone.external<"a.bin", 0, 32>]>
    ```
  }];
  let parameters = (ins "::mlir::RankedTensorType":$type, "::mlir::ArrayAttr":$parts);
  let assemblyFormat = "`<` $type `=` $parts `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The type of what is joined.
    ::mlir::RankedTensorType getStackedType();
  }];
}

#endif // HONE_ENCODINGS_TD
