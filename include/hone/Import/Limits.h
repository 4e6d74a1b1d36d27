// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much a model may make of few bytes. Each limit is far above what real models have, and is checked before anything of that
// size exists.

#ifndef HONE_IMPORT_LIMITS_H
#define HONE_IMPORT_LIMITS_H

#include <cstdint>

namespace hone {

/// Limits that a user may raise for a model that is meant to be so large.
struct Limits {
  /// Nodes of a model, in subgraphs too and after functions are inlined (--max-nodes). Large language models have some ten
  /// thousand.
  int64_t nodes = 1'000'000;
  /// Bytes of constants that the file says in fewer: sparse initializers when dense, splats, and elements that are computed during
  /// compilation, together (--max-expanded-bytes).
  int64_t expandedBytes = int64_t(256) << 20;
};

/// Messages and strings of a protobuf for each node that it may have: a node has a handful of names and attributes, and an empty
/// message of two bytes takes about 200 in memory.
constexpr int64_t kMessagesPerNode = 16;

/// Brackets around each other in MLIR text, aliases written out, and operators in one affine expression, which are a tree as deep.
/// MLIR's parser, verifier and printer go down by recursion; nested subgraphs of ONNX, of which protobuf allows 66, need 140.
constexpr int64_t kMaxNesting = 256;

/// Parts that a type or attribute alias may stand for when aliases in it are written out: what walks them sees shared parts again
/// each time.
constexpr int64_t kMaxAliasParts = 1'000'000;

/// Bytes of which the bytes of a resource in MLIR text may ask to be a multiple: a huge page.
constexpr uint64_t kMaxResourceAlignment = uint64_t(1) << 21;

/// Dimensions of a tensor, as in NumPy, which defines ONNX's operators.
constexpr int64_t kMaxRank = 64;

/// Elements of one value, and of all values of a model, that libonnx may keep to infer shapes from. What shapes are computed from has
/// about as many elements as a tensor has dimensions; each takes some 50 bytes, and values of unknown elements take as much.
constexpr int64_t kMaxPropagatedElements = 1024, kMaxPropagatedInAll = 4'000'000;

/// Bytes of constants in a program: code reaches them by offsets of 32 bits from where it lies.
constexpr int64_t kMaxProgramConstants = int64_t(1) << 30;

/// What `--untrusted` allows a compilation, where no option says otherwise: seconds (of time, and for each processor of computing),
/// and bytes of memory beside files that are mapped.
constexpr int64_t kUntrustedSeconds = 600, kUntrustedBytes = int64_t(8) << 30;

} // namespace hone

#endif // HONE_IMPORT_LIMITS_H
