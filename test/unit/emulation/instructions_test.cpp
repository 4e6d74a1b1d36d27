// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Single instructions where they have corners: rounding, saturation, sentinels, signs, masks. What they have to give is worked out by hand from
// their descriptions in the PTX ISA.

#include "device.h"

#include <gtest/gtest.h>

namespace hone::test {
namespace {

/// Code over registers %a, %b, %c and %d of 32 bits, and what %d of lane 0 is afterwards. All lanes have the same operands.
struct Case {
  const char *code;
  uint32_t a, b, c;
  uint32_t expected;
};

constexpr uint32_t kOne = 0x3f800000, kTwo = 0x40000000, kNan = 0x7fffffff;

const Case kIntegers[] = {
    {"add.sat.s32 %d, %a, %b;", 0x7fffffff, 1, 0, 0x7fffffff},
    {"sub.sat.s32 %d, %a, %b;", 0x80000000, 1, 0, 0x80000000},
    {"mul.hi.u32 %d, %a, %b;", 0x80000000, 6, 0, 3},
    {"mul.hi.s32 %d, %a, %b;", 0xfffffffe, 3, 0, 0xffffffff},
    {"mad.lo.s32 %d, %a, %b, %c;", 7, 0xffffffff, 3, 0xfffffffc},
    {"div.s32 %d, %a, %b;", 0xfffffff9, 2, 0, 0xfffffffd},
    {"rem.s32 %d, %a, %b;", 0xfffffff9, 2, 0, 0xffffffff},
    {"sad.u32 %d, %a, %b, %c;", 3, 10, 1, 8},
    {"abs.s32 %d, %a;", 0xfffffffb, 0, 0, 5},
    {"max.relu.s32 %d, %a, %b;", 0xfffffffb, 0xfffffffc, 0, 0},
    {"min.s16x2 %d, %a, %b;", 0x0005ffff, 0x00040001, 0, 0x0004ffff},
    {"{ .reg .b32 %x; add.cc.u32 %x, %a, %b; addc.u32 %d, %c, 0; }", 0xffffffff, 1, 5, 6},
    {"{ .reg .b32 %x; sub.cc.u32 %x, %a, %b; subc.u32 %d, %c, 0; }", 0, 1, 5, 4},
    {"{ .reg .b32 %x; mad.lo.cc.u32 %x, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0; }", 0x80000000, 2, 0, 1},
    {"{ .reg .b32 %x; mad.lo.cc.u32 %x, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0; }", 0xffffffff, 1, 1, 1},
    {"dp4a.s32.s32 %d, %a, %b, %c;", 0x01ff0203, 0x7f020304, 5, 127 - 2 + 6 + 12 + 5},
    {"dp2a.lo.s32.s32 %d, %a, %b, %c;", 0x0002ffff, 0x00000305, 10, 11},
    {"dp2a.hi.s32.u32 %d, %a, %b, %c;", 0x0002ffff, 0xff050000, 0, 2 * 255 - 5},
};

const Case kBits[] = {
    {"bfe.u32 %d, %a, %b, %c;", 0x12345678, 8, 12, 0x456},
    {"bfe.s32 %d, %a, %b, %c;", 0x00000f00, 8, 4, 0xffffffff},
    {"bfe.s32 %d, %a, %b, %c;", 0x80000000, 28, 8, 0xfffffff8},
    {"bfe.s32 %d, %a, %b, %c;", 0x80000000, 0, 0, 0},
    {"bfi.b32 %d, %a, %b, 8, 8;", 0x1ff, 0x12345678, 0, 0x1234ff78},
    {"bmsk.clamp.b32 %d, %a, %b;", 4, 8, 0, 0xff0},
    {"brev.b32 %d, %a;", 0x80000002, 0, 0, 0x40000001},
    {"clz.b32 %d, %a;", 0x00ffffff, 0, 0, 8},
    {"popc.b32 %d, %a;", 0xf0f00001, 0, 0, 9},
    {"bfind.u32 %d, %a;", 0x00010000, 0, 0, 16},
    {"bfind.s32 %d, %a;", 0xffff0000, 0, 0, 15},
    {"bfind.shiftamt.u32 %d, %a;", 0x00010000, 0, 0, 15},
    {"bfind.u32 %d, %a;", 0, 0, 0, 0xffffffff},
    {"fns.b32 %d, %a, %b, %c;", 0xf0, 0, 2, 5},
    {"fns.b32 %d, %a, %b, %c;", 0xf0, 31, 0xffffffff, 7},
    {"lop3.b32 %d, %a, %b, %c, 0x96;", 0xff00ff00, 0xf0f0f0f0, 0xcccccccc, 0xff00ff00 ^ 0xf0f0f0f0 ^ 0xcccccccc},
    {"lop3.b32 %d, %a, %b, %c, 0xca;", 0xff00ff00, 0x12345678, 0x9abcdef0, 0x12bc56f0},
    {"prmt.b32 %d, %a, %b, %c;", 0x33221100, 0x77665544, 0x7a51, 0x77005511},
    {"prmt.b32 %d, %a, %b, %c;", 0x00800000, 0, 0x000a, 0x000000ff},
    {"prmt.b32.f4e %d, %a, %b, %c;", 0x33221100, 0x77665544, 1, 0x44332211},
    {"prmt.b32.b4e %d, %a, %b, %c;", 0x33221100, 0x77665544, 1, 0x66770011},
    {"prmt.b32.rc8 %d, %a, %b, %c;", 0x33221100, 0x77665544, 2, 0x22222222},
    {"prmt.b32.ecl %d, %a, %b, %c;", 0x33221100, 0x77665544, 2, 0x33222222},
    {"prmt.b32.ecr %d, %a, %b, %c;", 0x33221100, 0x77665544, 2, 0x22221100},
    {"prmt.b32.rc16 %d, %a, %b, %c;", 0x33221100, 0x77665544, 1, 0x33223322},
    {"shf.l.clamp.b32 %d, %a, %b, %c;", 0x80000001, 0x12345678, 40, 0x80000001},
    {"shf.r.wrap.b32 %d, %a, %b, %c;", 0x80000001, 0x12345678, 36, 0x88000000},
    {"shl.b32 %d, %a, %b;", 0xffffffff, 32, 0, 0},
    {"shr.s32 %d, %a, %b;", 0x80000000, 40, 0, 0xffffffff},
    {"shr.u32 %d, %a, %b;", 0x80000000, 33, 0, 0},
    {"cnot.b32 %d, %a;", 0, 0, 0, 1},
    {"{ .reg .b16 %l, %h; mov.b32 {%l, %h}, %a; mov.b32 %d, {%h, %l}; }", 0x12345678, 0, 0, 0x56781234},
    {"slct.b32.s32 %d, %a, %b, %c;", 1, 2, 0xffffffff, 2},
};

const Case kFloats[] = {
    {"min.f32 %d, %a, %b;", kNan, kOne, 0, kOne},
    {"min.NaN.f32 %d, %a, %b;", kNan, kOne, 0, kNan},
    {"max.f32 %d, %a, %b;", 0x80000000, 0, 0, 0},
    {"min.xorsign.abs.f32 %d, %a, %b;", 0xc0000000, kOne, 0, 0xbf800000},
    {"add.f32 %d, %a, %b;", 1, 0, 0, 1},
    {"add.ftz.f32 %d, %a, %b;", 1, 0, 0, 0},
    {"add.sat.f32 %d, %a, %b;", 0x3f400000, 0x3f400000, 0, kOne},
    {"add.rz.f32 %d, %a, %b;", kOne, 0x33c00000, 0, 0x3f800000},
    {"add.rn.f32 %d, %a, %b;", kOne, 0x33c00000, 0, 0x3f800001},
    {"add.rp.f32 %d, %a, %b;", kOne, 0x00000001, 0, 0x3f800001},
    {"sub.rm.f32 %d, %a, %b;", kOne, 0x00000001, 0, 0x3f7fffff},
    {"fma.rn.f32 %d, %a, %b, %c;", 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000}, // 2^-46: the product is not rounded
    {"mul.rn.f32 %d, %a, %b;", 0x3f800001, 0x3f800001, 0, 0x3f800002},
    {"fma.rn.relu.f16x2 %d, %a, %b, %c;", 0x3c00bc00, 0x3c003c00, 0, 0x3c000000},
    {"mul.bf16x2 %d, %a, %b;", 0x3f804000, 0x40004040, 0, 0x400040c0},
    {"neg.bf16x2 %d, %a;", 0x3f804000, 0, 0, 0xbf80c000},
    {"copysign.f32 %d, %a, %b;", 0x80000000, kOne, 0, 0xbf800000},
    {"ex2.approx.ftz.f32 %d, %a;", 0x40400000, 0, 0, 0x41000000},
    {"lg2.approx.f32 %d, %a;", 0x41000000, 0, 0, 0x40400000},
    {"rsqrt.approx.f32 %d, %a;", 0x40800000, 0, 0, 0x3f000000},
    {"{ .reg .pred %p; testp.subnormal.f32 %p, %a; selp.b32 %d, 1, 0, %p; }", 1, 0, 0, 1},
    {"set.gt.u32.f32 %d, %a, %b;", kTwo, kOne, 0, 0xffffffff},
    {"set.lt.f32.s32 %d, %a, %b;", 0xffffffff, 0, 0, kOne},
    {"{ .reg .pred %p, %q; setp.ltu.f32 %p, %a, %b; setp.lt.and.f32 %q|%p, %a, %b, %p; selp.b32 %d, 1, 0, %p; }", kNan,
     kOne, 0, 1},
    {"{ .reg .pred %p; setp.lo.u32 %p, %a, %b; selp.b32 %d, 7, 9, %p; }", 1, 0xffffffff, 0, 7},
};

const Case kConversions[] = {
    {"cvt.rni.s32.f32 %d, %a;", 0x40200000, 0, 0, 2},
    {"cvt.rni.s32.f32 %d, %a;", 0x40600000, 0, 0, 4},
    {"cvt.rzi.s32.f32 %d, %a;", 0xc02ccccd, 0, 0, 0xfffffffe},
    {"cvt.rmi.s32.f32 %d, %a;", 0xc02ccccd, 0, 0, 0xfffffffd},
    {"cvt.rpi.s32.f32 %d, %a;", 0xc02ccccd, 0, 0, 0xfffffffe},
    {"cvt.rzi.s32.f32 %d, %a;", kNan, 0, 0, 0},
    {"cvt.rzi.s32.f32 %d, %a;", 0x501502f9, 0, 0, 0x7fffffff},
    {"cvt.rzi.u32.f32 %d, %a;", 0xbf800000, 0, 0, 0},
    {"cvt.rni.u8.f32 %d, %a;", 0x43960000, 0, 0, 255},
    {"cvt.rn.f32.u32 %d, %a;", 0xffffffff, 0, 0, 0x4f800000},
    {"cvt.rz.f32.u32 %d, %a;", 0xffffffff, 0, 0, 0x4f7fffff},
    {"cvt.s32.s8 %d, %a;", 0x000000ff, 0, 0, 0xffffffff},
    {"cvt.u32.u8 %d, %a;", 0x000001ff, 0, 0, 0xff},
    {"cvt.sat.s8.s32 %d, %a;", 300, 0, 0, 127},
    {"cvt.rmi.f32.f32 %d, %a;", 0xbf000000, 0, 0, 0xbf800000},
    {"cvt.sat.f32.f32 %d, %a;", kTwo, 0, 0, kOne},
    {"cvt.rna.tf32.f32 %d, %a;", 0x3f801000, 0, 0, 0x3f802000},
    {"cvt.rn.tf32.f32 %d, %a;", 0x3f801000, 0, 0, 0x3f800000},
    {"cvt.rn.bf16x2.f32 %d, %a, %b;", kOne, 0x3f808000, 0, 0x3f803f80},
    {"cvt.rz.bf16x2.f32 %d, %a, %b;", 0x3f80ffff, 0xbf80ffff, 0, 0x3f80bf80},
    {"cvt.rn.relu.f16x2.f32 %d, %a, %b;", kOne, 0xc0000000, 0, 0x3c000000},
    {"{ .reg .b16 %h; cvt.rn.satfinite.e4m3x2.f32 %h, %a, %b; cvt.u32.u16 %d, %h; }", kOne, 0x447a0000, 0, 0x387e},
    {"{ .reg .b16 %h; cvt.rn.satfinite.e5m2x2.f32 %h, %a, %b; cvt.u32.u16 %d, %h; }", kOne, 0x3f900000, 0, 0x3c3c},
    {"{ .reg .b16 %h; cvt.u16.u32 %h, %a; cvt.rn.f16x2.e4m3x2 %d, %h; }", 0x387e, 0, 0, 0x3c005f00},
    {"{ .reg .b16 %h; cvt.u16.u32 %h, %a; cvt.rn.f16x2.e4m3x2 %d, %h; }", 0x0181, 0, 0, 0x18009800},
    {"{ .reg .b16 %h; cvt.rz.f16.f32 %h, %a; cvt.u32.u16 %d, %h; }", 0x477ff000, 0, 0, 0x7bff},
    {"{ .reg .b16 %h; cvt.rn.f16.f32 %h, %a; cvt.u32.u16 %d, %h; }", 0x477ff000, 0, 0, 0x7c00},
    {"{ .reg .b16 %h; cvt.rp.f16.f32 %h, %a; cvt.u32.u16 %d, %h; }", 0x00000001, 0, 0, 1},
    {"cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c;", 200, 0xffffff00, 0x1234, 0x12347f80},
};

const Case kWarps[] = {
    {"{ .reg .pred %p; setp.lt.u32 %p, %laneid, 5; vote.sync.ballot.b32 %d, %p, -1; }", 0, 0, 0, 31},
    {"{ .reg .pred %p; setp.lt.u32 %p, %laneid, 5; vote.sync.any.pred %p, %p, -1; selp.b32 %d, 1, 0, %p; }", 0, 0, 0,
     1},
    {"{ .reg .pred %p; setp.lt.u32 %p, %laneid, 5; vote.sync.all.pred %p, !%p, -1; selp.b32 %d, 1, 0, %p; }", 0, 0, 0,
     0},
    {"{ .reg .b32 %x; mov.u32 %x, %laneid; redux.sync.add.s32 %d, %x, -1; }", 0, 0, 0, 496},
    {"{ .reg .b32 %x; mov.u32 %x, %laneid; redux.sync.max.u32 %d, %x, -1; }", 0, 0, 0, 31},
    {"{ .reg .b32 %x; and.b32 %x, %laneid, 1; match.any.sync.b32 %d, %x, -1; }", 0, 0, 0, 0x55555555},
    {"{ .reg .pred %p; match.all.sync.b32 %d|%p, %a, -1; }", 3, 0, 0, 0xffffffff},
    {"{ .reg .pred %p; elect.sync _|%p, -1; selp.b32 %d, 1, 0, %p; }", 0, 0, 0, 1},
    {"{ .reg .b32 %x; mov.u32 %x, %laneid; shfl.sync.idx.b32 %d, %x, 9, 0x181f, -1; }", 0, 0, 0, 1},
    {"{ .reg .b32 %x; mov.u32 %x, %laneid; shfl.sync.bfly.b32 %d, %x, 3, 0x1f, -1; }", 0, 0, 0, 3},
    {"{ .reg .b32 %x; .reg .pred %p; mov.u32 %x, %laneid; shfl.sync.up.b32 %x|%p, %x, 1, 0, -1; selp.b32 %d, 1, 2, %p; "
     "}",
     0, 0, 0, 2},
    {"{ .reg .b32 %x; .reg .pred %p; mov.u32 %x, 0; setp.lt.u32 %p, %laneid, 4; @%p bra L1; add.u32 %x, %x, 1; L1: "
     "activemask.b32 %d; }",
     0, 0, 0, 0xffffffff},
    {"{ .reg .b32 %x; and.b32 %x, %laneid, 1; add.u32 %x, %x, %a; T: .branchtargets L0, L1, L2; brx.idx %x, T;"
     " L0: mov.u32 %d, 10; bra L3; L1: mov.u32 %d, 20; bra L3; L2: mov.u32 %d, 30; L3: shfl.sync.bfly.b32 %d, %d, 1, "
     "0x1f, -1; }",
     1, 0, 0, 30},
    // Lanes that come to a shuffle on two ways meet at it.
    {"{ .reg .b32 %x; .reg .pred %p; mov.u32 %x, %laneid; setp.lt.u32 %p, %laneid, 4; @%p bra L1; add.u32 %x, %x, 100; "
     "bra.uni L2; L1: add.u32 %x, %x, 200;"
     " L2: shfl.sync.idx.b32 %d, %x, 31, 0x1f, -1; }",
     0, 0, 0, 131},
    {"{ .shared .align 4 .b32 s; st.shared.b32 [s], 0; bar.warp.sync -1; { .reg .b32 %x; atom.shared.add.noftz.f16x2 "
     "%x, [s], %a; } bar.warp.sync -1; ld.shared.b32 %d, [s]; }",
     0x3c004000, 0, 0, 0x50005400},
    {"{ .shared .align 4 .b32 s; st.shared.b32 [s], 0; bar.warp.sync -1; { .reg .b32 %x; atom.shared.inc.u32 %x, [s], "
     "%a; } bar.warp.sync -1; ld.shared.b32 %d, [s]; }",
     4, 0, 0, 32 % 5},
    {"{ .shared .align 4 .b32 s; st.shared.b32 [s], 9; bar.warp.sync -1; red.shared.min.s32 [s], %laneid; "
     "bar.warp.sync -1; ld.shared.b32 %d, [s]; }",
     0, 0, 0, 0},
    {"{ .reg .pred %p, %q; setp.lt.u32 %p, %laneid, 7; bar.red.popc.u32 %d, 0, %p; }", 0, 0, 0, 7},
};

/// A module with one kernel for each case; they share a parameter, where the operands lie and after them the result.
template <size_t N> void check(const Case (&cases)[N]) {
  std::string text = ".version 8.6\n.target sm_90a\n.address_size 64\n";
  for (size_t i = 0; i < N; ++i)
    text +=
        ".visible .entry k" + std::to_string(i) +
        "(.param .u64 p)\n{\n.reg .b32 %a, %b, %c, %d;\n.reg .b64 %p0;\n.reg .pred %first;\n"
        "ld.param.u64 %p0, [p];\nld.global.b32 %a, [%p0];\nld.global.b32 %b, [%p0+4];\nld.global.b32 %c, [%p0+8];\n" +
        cases[i].code + "\nsetp.eq.u32 %first, %laneid, 0;\n@%first st.global.b32 [%p0+12], %d;\nret;\n}\n";
  Device device;
  ASSERT_EQ(device.loadText(text), 0);
  for (size_t i = 0; i < N; ++i) {
    DevicePointer words = device.upload(std::vector<uint32_t>{cases[i].a, cases[i].b, cases[i].c, 0xdeadbeef});
    ASSERT_EQ(device.launch("k" + std::to_string(i), {}, words), 0);
    EXPECT_EQ(device.download<uint32_t>(words, 4)[3], cases[i].expected) << cases[i].code;
  }
}

TEST(Instructions, OfIntegers) { check(kIntegers); }
TEST(Instructions, OfBits) { check(kBits); }
TEST(Instructions, OfFloats) { check(kFloats); }
TEST(Instructions, ThatConvert) { check(kConversions); }
TEST(Instructions, OfWarps) { check(kWarps); }

} // namespace
} // namespace hone::test
