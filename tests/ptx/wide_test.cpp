// Instructions with a carry: what a chain of them makes of numbers of several words.
#include "tests/ptx/check_op.h"
#include "tests/ptx/groups.h"
#include "tests/ptx/integers.h"

namespace keel::ptx {
namespace {

// Runs a body over pairs of 64-bit numbers, whose words are in %w5, %w6 and %w7, %w8; it leaves its
// results in %w9 and %w10.
Array run_words(const std::string& body, const std::vector<std::pair<u64, u64>>& pairs) {
  const std::string text = kernel_text(
      3,
      ".reg .b32 %w<20>; .reg .b64 %d<20>;\n"
      "mov.u32 %w0, %ctaid.x; mov.u32 %w1, %tid.x; mad.lo.s32 %w0, %w0, 32, %w1;\n"
      "mul.wide.u32 %d0, %w0, 8;\n"
      "ld.param.u64 %d1, [p0]; add.s64 %d1, %d1, %d0; ld.global.v2.u32 {%w5, %w6}, [%d1];\n"
      "ld.param.u64 %d1, [p1]; add.s64 %d1, %d1, %d0; ld.global.v2.u32 {%w7, %w8}, [%d1];\n" +
          body +
          "\nld.param.u64 %d1, [p2]; add.s64 %d1, %d1, %d0;\n"
          "st.global.v2.u32 [%d1], {%w9, %w10}; ret;\n");
  const std::size_t whole = (pairs.size() + 31) / 32 * 32;
  std::vector<Array> arrays(3, Array(whole));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    arrays[0][i] = pairs[i].first;
    arrays[1][i] = pairs[i].second;
  }
  run_kernel(text, arrays, {std::int64_t(whole / 32), 32});
  return arrays[2];
}

void check_chain(const std::string& body, u64 (*expected)(u64, u64)) {
  CAPTURE(body);
  std::vector<std::pair<u64, u64>> pairs;
  for (const u64 a : edges<u64>()) {
    for (const u64 b : edges<u64>()) pairs.emplace_back(a, b);
  }
  const Array got = run_words(body, pairs);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    REQUIRE(got[i] == expected(pairs[i].first, pairs[i].second));
  }
}

}  // namespace

void check_carries() {
  check_chain("add.cc.u32 %w9, %w5, %w7; addc.u32 %w10, %w6, %w8;",
              [](u64 a, u64 b) { return a + b; });
  check_chain("sub.cc.u32 %w9, %w5, %w7; subc.u32 %w10, %w6, %w8;",
              [](u64 a, u64 b) { return a - b; });
  // The carry out of 64 bits, by a third word.
  check_chain(
      "add.cc.u32 %w9, %w5, %w7; addc.cc.u32 %w9, %w6, %w8; addc.u32 %w9, 0, 0; mov.u32 %w10, 0;",
      [](u64 a, u64 b) { return u64{a + b < a}; });
  check_chain(
      "sub.cc.u32 %w9, %w5, %w7; subc.cc.u32 %w9, %w6, %w8; subc.u32 %w9, 0, 0; mov.u32 %w10, 0;",
      [](u64 a, u64 b) { return a < b ? u64{0xffffffff} : 0; });
  // The upper half of a product of 64 bits, from those of words.
  check_chain(
      "mul.hi.u32 %w11, %w5, %w7;\n"
      "mad.lo.cc.u32 %w11, %w5, %w8, %w11; madc.hi.cc.u32 %w9, %w5, %w8, 0; addc.u32 %w10, 0, 0;\n"
      "mad.lo.cc.u32 %w11, %w6, %w7, %w11; madc.hi.cc.u32 %w9, %w6, %w7, %w9;\n"
      "addc.u32 %w10, %w10, 0;\n"
      "mad.lo.cc.u32 %w9, %w6, %w8, %w9; madc.hi.u32 %w10, %w6, %w8, %w10;",
      [](u64 a, u64 b) { return u64(static_cast<unsigned __int128>(a) * b >> 64); });
  // Sums of a product's halves and a word that carry out.
  check_chain(
      "mad.lo.cc.u32 %w9, %w5, %w7, %w6; madc.lo.cc.u32 %w9, %w5, 0, 0; addc.u32 %w10, 0, 0;",
      [](u64 a, u64 b) {
        const u64 low = u64{u32(u64{u32(a)} * u32(b))} + (a >> 32);
        return low >> 32;
      });
  check_chain(
      "mad.hi.cc.u32 %w9, %w5, %w7, %w6; madc.hi.cc.u32 %w9, %w5, 0, 0; addc.u32 %w10, 0, 0;",
      [](u64 a, u64 b) {
        const u64 high = (u64{u32(a)} * u32(b) >> 32) + (a >> 32);
        return high >> 32;
      });
  check_chain("add.cc.u32 %w9, %w5, %w7; madc.lo.u32 %w9, %w5, 3, 1; mov.u32 %w10, 0;",
              [](u64 a, u64 b) {
                const u32 carry = u32(a) + u32(b) < u32(a);
                return u64{u32(u32(a) * 3 + 1 + carry)};
              });
  for (const char* const name : {"add.cc.u32", "addc.cc.u32", "addc.u32", "sub.cc.u32",
                                 "subc.cc.u32", "subc.u32", "mad.lo.cc.u32", "madc.lo.cc.u32",
                                 "madc.lo.u32", "mad.hi.cc.u32", "madc.hi.cc.u32", "madc.hi.u32"}) {
    applied().insert(name);
  }
}

TEST_CASE("ptx: carries") { check_carries(); }

}  // namespace keel::ptx
