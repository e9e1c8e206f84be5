// Branches, loops, calls and barriers; what is not known is refused by its name.
#include "tests/ptx/check_op.h"
#include "tests/ptx/groups.h"

namespace keel::ptx {
namespace {

constexpr const char* kOneArray =
    ".reg .pred %p<9>; .reg .b32 %w<20>; .reg .b64 %d<9>;\n"
    "mov.u32 %w0, %tid.x; ld.param.u64 %d0, [p0]; mul.wide.u32 %d1, %w0, 8;\n"
    "add.s64 %d0, %d0, %d1; mov.u32 %w1, 0;\n";
constexpr const char* kEnd = "st.global.u32 [%d0], %w1; ret;\n";

Array run_body(const std::string& body, int threads = 32) {
  std::vector<Array> arrays = {Array(std::size_t(threads))};
  run_kernel(kernel_text(1, kOneArray + body + kEnd), arrays, {1, threads});
  return arrays[0];
}

std::string fault_of_body(const std::string& body, int threads = 32) {
  return fault_of([&] { run_body(body, threads); });
}

bool says(const std::string& fault, const std::string& part) {
  CAPTURE(fault);
  CHECK(fault.find(part) != std::string::npos);
  return fault.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("ptx: lanes loop as often as each has to") {
  const Array got = run_body(
      "L: setp.ge.u32 %p0, %w1, %w0; @%p0 bra E;\n"
      "add.u32 %w1, %w1, 1; bra.uni L;\nE:\n");
  for (std::size_t lane = 0; lane < 32; ++lane) CHECK(got[lane] == lane);
}

TEST_CASE("ptx: branches within branches, and lanes that return early") {
  const Array got = run_body(
      "and.b32 %w2, %w0, 1; setp.eq.u32 %p0, %w2, 0; setp.gt.u32 %p1, %w0, 20;\n"
      "@%p0 bra A;\n@%p1 ret;\nadd.u32 %w1, %w1, 100; bra M;\n"
      "A: @!%p1 bra M;\nadd.u32 %w1, %w1, 1000;\nM: add.u32 %w1, %w1, %w0;\n");
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t expected =
        lane % 2 == 0 ? lane + (lane > 20 ? 1000 : 0) : (lane > 20 ? 0 : lane + 100);
    CHECK(got[lane] == expected);
  }
}

TEST_CASE("ptx: predicated instructions leave other lanes alone") {
  const Array got = run_body(
      "mov.u32 %w1, 5; setp.lt.u32 %p0, %w0, 10;\n"
      "@%p0 add.u32 %w1, %w1, %w0;\n@!%p0 mov.u32 %w1, 9;\n");
  for (std::size_t lane = 0; lane < 32; ++lane) CHECK(got[lane] == (lane < 10 ? 5 + lane : 9));
}

TEST_CASE("ptx: a block of several warps and a partial one") {
  const Array got = run_body("mov.u32 %w1, %ntid.x; mad.lo.s32 %w1, %w0, 3, %w1;\n", 71);
  for (std::size_t i = 0; i < 71; ++i) CHECK(got[i] == 3 * i + 71);
}

TEST_CASE("ptx: a function that is called has its own names and returns from every place") {
  const std::string function =
      ".func (.param .b32 out) twice_or_less(.param .b32 in)\n{\n.reg .b32 %w<3>; .reg .pred "
      "%p<2>;\n"
      "ld.param.u32 %w0, [in]; setp.gt.u32 %p0, %w0, 9; add.u32 %w1, %w0, %w0;\n"
      "st.param.b32 [out], %w1; @!%p0 ret;\nst.param.b32 [out+0], 1; ret;\n}\n";
  std::string text =
      kernel_text(1, std::string(kOneArray) +
                         "{ .reg .b32 temporary; .param .b32 given; .param .b32 back;\n"
                         "st.param.b32 [given+0], %w0;\n"
                         "call.uni (back), twice_or_less, (given);\n"
                         "ld.param.b32 %w1, [back+0]; }\n" +
                         kEnd);
  text.insert(text.find(".visible"), function);
  std::vector<Array> arrays = {Array(32)};
  run_kernel(text, arrays, {});
  for (std::size_t i = 0; i < 32; ++i) CHECK(arrays[0][i] == (i > 9 ? 1 : 2 * i));
}

TEST_CASE("ptx: what warps write before a barrier all read after it") {
  const std::string body =
      ".shared .align 4 .b8 m[512];\nmov.u32 %w2, m; shl.b32 %w3, %w0, 2; add.u32 %w3, %w2, %w3;\n"
      "st.shared.u32 [%w3], %w0; bar.sync 0;\nsub.u32 %w4, 127, %w0; shl.b32 %w4, %w4, 2;\n"
      "add.u32 %w4, %w2, %w4; ld.shared.u32 %w1, [%w4];\n";
  const Array got = run_body(body, 128);
  for (std::size_t i = 0; i < 128; ++i) CHECK(got[i] == 127 - i);
}

TEST_CASE("ptx: teams of two warps pass barriers of their own") {
  const std::string body =
      ".shared .align 4 .b8 m[512];\nmov.u32 %w2, m; shl.b32 %w3, %w0, 2; add.u32 %w3, %w2, %w3;\n"
      "shr.u32 %w5, %w0, 6; add.u32 %w6, %w5, 1;\n"
      "st.shared.u32 [%w3], %w0; bar.sync %w6, 64;\nxor.b32 %w4, %w0, 32; shl.b32 %w4, %w4, 2;\n"
      "add.u32 %w4, %w2, %w4; ld.shared.u32 %w1, [%w4];\n";
  const Array got = run_body(body, 128);
  for (std::size_t i = 0; i < 128; ++i) CHECK(got[i] == (i ^ 32));
}

TEST_CASE("ptx: what is not known is refused by its name before anything runs") {
  says(fault_of_body("ex3.approx.f32 %w1, %w0;\n"),
       "the instruction 'ex3.approx.f32' is not known");
  says(fault_of_body("add.f32 %w1, %w0, %w0;\n"), "'add.f32'");
  says(fault_of_body("mov.u32 %w1, %clock.x;\n"), "%clock.x");
  says(fault_of_body("add.u32 %w1, %w77, 1;\n"), "the name %w77 is not known");
  says(fault_of_body("add.u64 %d2, %w0, 1;\n"), "of another type");
  says(fault_of_body("add.u32 %w1, %w0;\n"), "with 2 operands");
  says(fault_of_body("bra NOWHERE;\n"), "there is no label NOWHERE");
  says(fault_of_body("ld.shared.u32 %w1, [p0];\n"), "lies elsewhere");
  says(fault_of_body("call.uni absent, ();\n"), "there is no function absent");
  says(fault_of_body("add.u32 %w1, %w0, #;\n"), "the character '#'");
  says(fault_of([] { Module(".version 9.0\n.const .b32 x;\n"); }), ".const");
  says(fault_of([] { decode(Module(".version 9.0\n"), "k"); }), "there is no kernel k");
}

// Every instruction of the table has been tried, or is one that the warp itself runs, for which the
// other tests here are.
TEST_CASE("ptx: no instruction is without a test") {
  check_integers();
  check_bits();
  check_carries();
  check_floats();
  check_rounding();
  check_approximations();
  check_comparisons();
  check_conversions();
  check_moves();
  check_accesses();
  check_shuffles();
  for (const char* const own :
       {"bra", "bra.uni", "ret", "exit", "bar.sync", "call.uni", "prefetch.L2"}) {
    applied().insert(own);
  }
  for (const std::string& name : form_names()) {
    CAPTURE(name);
    CHECK((applied().contains(name) || name.starts_with("(")));
  }
}

}  // namespace keel::ptx
