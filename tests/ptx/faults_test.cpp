// Faults planted in the text of a right kernel, such as a compiler might make. Each is noticed by a
// watch or by the result.
#include "tests/ptx/check_op.h"

namespace keel::ptx {
namespace {

// Sums of 200 numbers by a block of 64 threads: a loop with a tail, sums over warps by shuffles,
// then over the block by shared memory; thread i then writes sum + 4 i of p0 to p1, four at a time.
const std::string kSums = kernel_text(2, R"(
  .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %d<9>; .reg .f32 %f<20>;
  .shared .align 4 .b8 sums[8];
  mov.u32 %r0, %tid.x;
  ld.param.u64 %d0, [p0];
  mov.f32 %f0, 0f00000000;
  mov.u32 %r1, %r0;
LOOP:
  setp.ge.s32 %p0, %r1, 200;
  @%p0 bra DONE;
  mul.wide.s32 %d1, %r1, 4;
  add.s64 %d1, %d0, %d1;
  ld.global.f32 %f1, [%d1];
  add.rn.f32 %f0, %f0, %f1;
  add.s32 %r1, %r1, 64;
  bra.uni LOOP;
DONE:
  shfl.sync.bfly.b32 %r2, %f0, 16, 31, -1;
  mov.b32 %f2, %r2;
  add.rn.f32 %f0, %f0, %f2;
  shfl.sync.bfly.b32 %r2, %f0, 8, 31, -1;
  mov.b32 %f2, %r2;
  add.rn.f32 %f0, %f0, %f2;
  shfl.sync.bfly.b32 %r2, %f0, 4, 31, -1;
  mov.b32 %f2, %r2;
  add.rn.f32 %f0, %f0, %f2;
  shfl.sync.bfly.b32 %r2, %f0, 2, 31, -1;
  mov.b32 %f2, %r2;
  add.rn.f32 %f0, %f0, %f2;
  shfl.sync.bfly.b32 %r2, %f0, 1, 31, -1;
  mov.b32 %f2, %r2;
  add.rn.f32 %f0, %f0, %f2;
  and.b32 %r3, %r0, 31;
  setp.ne.s32 %p1, %r3, 0;
  shr.u32 %r4, %r0, 5;
  shl.b32 %r5, %r4, 2;
  mov.u32 %r6, sums;
  add.s32 %r5, %r6, %r5;
  @%p1 bra WRITTEN;
  st.shared.f32 [%r5], %f0;
WRITTEN:
  bar.sync 0;
  ld.shared.f32 %f3, [sums];
  ld.shared.f32 %f4, [sums+4];
  add.rn.f32 %f3, %f3, %f4;
  bar.sync 0;
  setp.gt.s32 %p2, %r0, 49;
  @%p2 bra END;
  ld.param.u64 %d2, [p1];
  mul.wide.u32 %d3, %r0, 16;
  add.s64 %d4, %d0, %d3;
  add.s64 %d2, %d2, %d3;
  ld.global.v4.f32 {%f5, %f6, %f7, %f8}, [%d4];
  add.rn.f32 %f5, %f5, %f3;
  add.rn.f32 %f6, %f6, %f3;
  add.rn.f32 %f7, %f7, %f3;
  add.rn.f32 %f8, %f8, %f3;
  st.global.v4.f32 [%d2], {%f5, %f6, %f7, %f8};
END:
  ret;
)");

struct Planted {
  const char *what, *right, *wrong;
};
constexpr Planted kPlanted[] = {
    {"the first barrier is missing", "WRITTEN:\n  bar.sync 0;", "WRITTEN:"},
    {"the barrier is within the branch",
     "@%p1 bra WRITTEN;\n  st.shared.f32 [%r5], %f0;\nWRITTEN:\n  bar.sync 0;",
     "@%p1 bra WRITTEN;\n  st.shared.f32 [%r5], %f0;\n  bar.sync 0;\nWRITTEN:"},
    {"a barrier of one warp only", "WRITTEN:\n  bar.sync 0;", "WRITTEN:\n  bar.sync 0, 32;"},
    {"the lanes' mask names half of them", "%f0, 16, 31, -1;", "%f0, 16, 31, 0xffff;"},
    {"the mask lacks the last lane", "%f0, 1, 31, -1;", "%f0, 1, 31, 0x7fffffff;"},
    {"a shuffle within half a warp", "%f0, 16, 31, -1;", "%f0, 16, 4127, -1;"},
    {"a shuffle with the wrong partner", "%f0, 4, 31, -1;", "%f0, 8, 31, -1;"},
    {"the loop goes one too far", "%p0, %r1, 200;", "%p0, %r1, 201;"},
    {"the loop ends one too early", "%p0, %r1, 200;", "%p0, %r1, 199;"},
    {"the comparison is strict", "setp.ge.s32 %p0", "setp.gt.s32 %p0"},
    {"the stride skips one", "add.s32 %r1, %r1, 64;", "add.s32 %r1, %r1, 65;"},
    {"the loop's guard is missing", "@%p0 bra DONE;", ""},
    {"the loop's guard is turned round", "@%p0 bra DONE;", "@!%p0 bra DONE;"},
    {"the predicate takes the thread for the lane", "setp.ne.s32 %p1, %r3, 0;",
     "setp.ne.s32 %p1, %r0, 0;"},
    {"the address counts bytes for elements", "mul.wide.s32 %d1, %r1, 4;",
     "mul.wide.s32 %d1, %r1, 1;"},
    {"the address is off by one element", "ld.global.f32 %f1, [%d1];",
     "ld.global.f32 %f1, [%d1+4];"},
    {"the vector is off by one element", "st.global.v4.f32 [%d2],", "st.global.v4.f32 [%d2+4],"},
    {"shared memory is too small", "sums[8]", "sums[4]"},
    {"the warps' sums lie on each other", "shl.b32 %r5, %r4, 2;", "shl.b32 %r5, %r4, 0;"},
    {"the second sum is never written", "shr.u32 %r4, %r0, 5;", "shr.u32 %r4, %r0, 6;"},
    {"the last threads go beyond the end", "setp.gt.s32 %p2, %r0, 49;",
     "setp.gt.s32 %p2, %r0, 50;"},
    {"one thread too few writes", "setp.gt.s32 %p2, %r0, 49;", "setp.ge.s32 %p2, %r0, 49;"},
    {"a sum starts with what was there", "mov.f32 %f0, 0f00000000;", "mov.f32 %f0, 0f3F800000;"},
    {"a sum rounds down", "add.rn.f32 %f0, %f0, %f1;", "add.rm.f32 %f0, %f0, %f1;"},
    {"elements are stored in the wrong order", "{%f5, %f6, %f7, %f8};", "{%f5, %f7, %f6, %f8};"},
    {"a parameter is taken for the other", "ld.param.u64 %d2, [p1];", "ld.param.u64 %d2, [p0];"},
};

// The results of the kernel over 200 floats that rounding tells apart.
Array results_of_text(const std::string& text) {
  std::vector<Array> arrays(2, Array(100));
  auto* const x = reinterpret_cast<float*>(arrays[0].data());
  for (int i = 0; i < 200; ++i) x[i] = std::sin(float(i)) + 0.1f;
  run_kernel(text, arrays, {1, 64});
  return arrays[1];
}

}  // namespace

TEST_CASE("ptx faults: a kernel without one is right") {
  const Array got = results_of_text(kSums);
  const auto* const y = reinterpret_cast<const float*>(got.data());
  double sum = 0;
  for (int i = 0; i < 200; ++i) sum += std::sin(float(i)) + 0.1f;
  for (int i = 0; i < 200; ++i) CHECK(std::abs(y[i] - (std::sin(float(i)) + 0.1f + sum)) < 1e-4);
}

TEST_CASE("ptx faults: each of those planted in the text is noticed") {
  const Array right = results_of_text(kSums);
  for (const Planted& fault : kPlanted) {
    const std::string what = fault.what;
    CAPTURE(what);
    std::string text = kSums;
    const std::size_t at = text.find(fault.right);
    REQUIRE(at != std::string::npos);
    text.replace(at, std::string(fault.right).size(), fault.wrong);
    Array got;
    const std::string said = fault_of([&] { got = results_of_text(text); });
    CHECK((said != "" || got != right));
  }
}

}  // namespace keel::ptx
