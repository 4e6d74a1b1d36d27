// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoders of instructions, by family. Those that several families share are chosen by their type.

#pragma once

#include "ptx/decoder.h"

namespace hone::emulation {

// arithmetic.cpp: chooses among the next two
void decodeArithmetic(Decoder &decoder, Statement &statement);
// integer.cpp
void decodeIntegerArithmetic(Decoder &decoder, Statement &statement, Type type);
void decodePackedIntegers(Decoder &decoder, Statement &statement, Type type);
void decodeDotProduct(Decoder &decoder, Statement &statement);
// carry.cpp
void decodeCarry(Decoder &decoder, Statement &statement, Type type);
// float.cpp
void decodeFloatArithmetic(Decoder &decoder, Statement &statement, Type type);
// rounded.cpp: f32 and f64 in another direction than to the nearest
void decodeRounded(Decoder &decoder, Statement &statement, Type type, int direction);
// functions.cpp
void decodeFunction(Decoder &decoder, Statement &statement);
void decodeTest(Decoder &decoder, Statement &statement);

// bits.cpp
void decodeLogic(Decoder &decoder, Statement &statement);
void decodeShift(Decoder &decoder, Statement &statement);
void decodeFunnelShift(Decoder &decoder, Statement &statement);
void decodeLookup(Decoder &decoder, Statement &statement);
void decodeField(Decoder &decoder, Statement &statement);
void decodeCount(Decoder &decoder, Statement &statement);
void decodePermute(Decoder &decoder, Statement &statement);

// moves.cpp
void decodeMove(Decoder &decoder, Statement &statement);
void decodeSelect(Decoder &decoder, Statement &statement);
void decodeSelectBySign(Decoder &decoder, Statement &statement);

// compare.cpp
void decodeCompare(Decoder &decoder, Statement &statement);
void decodeSet(Decoder &decoder, Statement &statement);

// convert.cpp
void decodeConvert(Decoder &decoder, Statement &statement);
void decodeConvertPack(Decoder &decoder, Statement &statement);
// convert_packed.cpp: conversions of two numbers at once; false where the types are not such
bool decodeConvertPairs(Decoder &decoder, Statement &statement, Type to, Type from);

// access.cpp
void decodeLoad(Decoder &decoder, Statement &statement);
void decodeStore(Decoder &decoder, Statement &statement);
void decodePrefetch(Decoder &decoder, Statement &statement);
void decodeAddressConversion(Decoder &decoder, Statement &statement);
void decodeAddressTest(Decoder &decoder, Statement &statement);

// atomic.cpp
void decodeAtomic(Decoder &decoder, Statement &statement);

// control.cpp
void decodeBranch(Decoder &decoder, Statement &statement);
void decodeBranchByTable(Decoder &decoder, Statement &statement);
void decodeCall(Decoder &decoder, Statement &statement);
void decodeReturn(Decoder &decoder, Statement &statement);
void decodeExit(Decoder &decoder, Statement &statement);
void decodeTrap(Decoder &decoder, Statement &statement);
void decodeFence(Decoder &decoder, Statement &statement);
void decodePause(Decoder &decoder, Statement &statement);
void decodeRegisterCount(Decoder &decoder, Statement &statement);
// barrier.cpp
void decodeBarrier(Decoder &decoder, Statement &statement);
// cluster.cpp
void decodeMapToBlock(Decoder &decoder, Statement &statement);
void decodeClusterBarrier(Decoder &decoder, Statement &statement);

// matrix_multiply.cpp
void decodeMultiply(Decoder &decoder, Statement &statement);
// group_multiply.cpp
void decodeGroupMultiply(Decoder &decoder, Statement &statement);
// matrix_move.cpp
void decodeMatrixMove(Decoder &decoder, Statement &statement);
void decodeTransposition(Decoder &decoder, Statement &statement);

// async_copy.cpp
void decodeAsyncCopy(Decoder &decoder, Statement &statement);
// mbarrier.cpp
void decodeMbarrier(Decoder &decoder, Statement &statement);

// warpwide.cpp
void decodeShuffle(Decoder &decoder, Statement &statement);
void decodeVote(Decoder &decoder, Statement &statement);
void decodeActiveMask(Decoder &decoder, Statement &statement);
void decodeMatch(Decoder &decoder, Statement &statement);
void decodeReduce(Decoder &decoder, Statement &statement);
void decodeElect(Decoder &decoder, Statement &statement);

} // namespace hone::emulation
