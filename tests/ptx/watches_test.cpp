// Faults that the interpreter watches for: each fault is named with its place, and right programs
// pass.
#include "tests/ptx/check_op.h"

namespace keel::ptx {
namespace {

constexpr const char* kWatched =
    ".reg .pred %p<9>; .reg .b32 %w<20>; .reg .b64 %d<9>; .reg .f32 %f<9>;\n"
    ".shared .align 16 .b8 m[512];\n.shared .align 16 .b8 n[16];\n"
    "mov.u32 %w0, %tid.x; ld.param.u64 %d0, [p0]; mul.wide.u32 %d1, %w0, 8;\n"
    "add.s64 %d1, %d0, %d1; mov.u32 %w2, m; shl.b32 %w3, %w0, 2; add.u32 %w3, %w2, %w3;\n";

std::string fault(const std::string& body, Grid grid = {}) {
  std::vector<Array> arrays = {Array(64)};
  return fault_of([&] { run_kernel(kernel_text(1, kWatched + body + "ret;\n"), arrays, grid); });
}

void check_says(const std::string& body, const std::string& part, Grid grid = {}) {
  CAPTURE(body);
  const std::string said = fault(body, grid);
  CAPTURE(said);
  CHECK(said.find(part) != std::string::npos);
}

void check_passes(const std::string& body, Grid grid = {}) {
  CAPTURE(body);
  CHECK(fault(body, grid) == "");
}

}  // namespace

TEST_CASE("ptx watch: addresses out of bounds") {
  check_passes("ld.global.u64 %d2, [%d0+504];\n");
  check_says("ld.global.u64 %d2, [%d0+512];\n",
             "a load of 8 bytes of global memory, out of bounds");
  check_says("ld.global.u64 %d2, [%d0+512];\n", "byte 512 of 512 bytes");
  check_says("ld.global.u32 %w4, [%d0+-4];\n", "out of bounds");
  check_says("st.global.v4.f32 [%d0+512], {%f0, %f0, %f0, %f0};\n", "a store of 16 bytes");
  check_passes("st.shared.u32 [%w2+508], %w0;\n", {1, 1});
  check_says("st.shared.u32 [%w2+512], %w0;\n", "shared memory, out of bounds", {1, 1});
  check_says("st.shared.u32 [%w2+-4], %w0;\n", "shared memory, out of bounds", {1, 1});
  check_says("st.shared.u32 [n+16], %w0;\n", "shared memory, out of bounds", {1, 1});
  check_says(".local .align 4 .b8 l[8];\nst.local.u32 [l+16], %w0;\n",
             "local memory, out of bounds");
  check_says("mov.b64 %d3, p0;\nld.param.u64 %d2, [%d3+8];\n", "parameter memory, out of bounds");
  check_says("setp.eq.u32 %p0, %w0, 9;\n@%p0 ld.global.u64 %d2, [%d0+512];\n", "thread 9:");
}

TEST_CASE("ptx watch: misaligned addresses") {
  check_says("ld.global.u32 %w4, [%d0+2];\n", "global memory, misaligned: byte 2 of 512");
  check_says("ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d0+8];\n", "misaligned");
  check_says("st.shared.v2.u32 [%w2+4], {%w0, %w0};\n", "shared memory, misaligned");
  check_says(".local .align 8 .b8 l[16];\nst.local.u64 [l+4], %d0;\n", "local memory, misaligned");
}

TEST_CASE("ptx watch: shared memory that nobody has written") {
  check_says("ld.shared.u32 %w4, [%w3];\n", "read before anything was written there");
  check_says("st.shared.u16 [%w3], %w0;\nld.shared.u32 %w4, [%w3];\n", "read before anything");
  check_passes("st.shared.u32 [%w3], %w0;\nld.shared.u32 %w4, [%w3];\n");
  // A second block finds nothing of the first.
  check_says(
      "mov.u32 %w5, %ctaid.x; setp.eq.u32 %p0, %w5, 0;\n@%p0 st.shared.u32 [%w3], %w0;\n"
      "ld.shared.u32 %w4, [%w3];\n",
      "block 1", {2, 32});
}

TEST_CASE("ptx watch: barriers that not all reach") {
  check_says("setp.lt.u32 %p0, %w0, 40;\n@!%p0 bra E;\nbar.sync 0;\nE:\n", "divergent warp 1",
             {1, 64});
  check_says("setp.lt.u32 %p0, %w0, 32;\n@!%p0 bra E;\nbar.sync 0;\nE:\n",
             "a barrier that not all threads reach; warp 0 waits at line", {1, 64});
  check_says("setp.lt.u32 %p0, %w0, 32;\n@!%p0 bra E;\nbar.sync 0;\nbra F;\nE:\nbar.sync 0;\nF:\n",
             "different barriers", {1, 64});
  check_says("setp.eq.u32 %p0, %w0, 3;\n@%p0 ret;\nbar.sync 0;\n", "they have returned");
  check_says("setp.eq.u32 %p0, %w0, 3;\n@%p0 bar.sync 0;\n", "a barrier under a predicate");
  check_says("bar.sync 1, 48;\n", "not of whole warps", {1, 64});
  check_passes("bar.sync 0;\nbar.sync 0;\n", {3, 96});
}

TEST_CASE("ptx watch: races in shared memory") {
  const std::string next = "xor.b32 %w4, %w0, 32; shl.b32 %w4, %w4, 2; add.u32 %w4, %w2, %w4;\n";
  const Grid two{1, 64};
  check_says(next + "st.shared.u32 [%w3], %w0;\nst.shared.u32 [%w4], %w0;\n",
             "a race in shared memory", two);
  check_says(next +
                 "st.shared.u32 [%w3], %w0;\nbar.sync 0;\nld.shared.u32 %w5, [%w4];\n"
                 "add.u32 %w5, %w5, 1;\nst.shared.u32 [%w3], %w5;\n",
             "a race in shared memory", two);
  check_passes(next +
                   "st.shared.u32 [%w3], %w0;\nbar.sync 0;\nld.shared.u32 %w5, [%w4];\n"
                   "bar.sync 0;\nst.shared.u32 [%w3], %w5;\n",
               two);
  // Writing the same value twice is none.
  check_passes("st.shared.u32 [%w2], 7;\n", two);
  check_says("st.shared.u32 [%w2], %w0;\n", "a race in shared memory", two);
  // Bytes of one word are not each other.
  check_passes("add.u32 %w6, %w2, %w0;\nst.shared.u8 [%w6], %w0;\n", two);
  // A barrier of one team says nothing to another.
  check_says(next +
                 "st.shared.u32 [%w3], %w0;\nshr.u32 %w6, %w0, 5; add.u32 %w6, %w6, 1;\n"
                 "bar.sync %w6, 32;\nst.shared.u32 [%w4], 99;\n",
             "a race in shared memory", two);
}

TEST_CASE("ptx watch: races between the lanes of a warp") {
  const std::string next = "xor.b32 %w4, %w0, 1; shl.b32 %w4, %w4, 2; add.u32 %w4, %w2, %w4;\n";
  check_says(next + "st.shared.u32 [%w3], %w0;\nld.shared.u32 %w5, [%w4];\n", "a race");
  check_passes(next + "st.shared.u32 [%w3], %w0;\nbar.warp.sync -1;\nld.shared.u32 %w5, [%w4];\n");
  check_says(next +
                 "st.shared.u32 [%w3], %w0;\nbar.warp.sync -1;\nld.shared.u32 %w5, [%w4];\n"
                 "st.shared.u32 [%w3], 5;\n",
             "a race");
}

TEST_CASE("ptx watch: races between threads that have a half of a word each") {
  const std::string written =
      "shl.b32 %w6, %w0, 1; add.u32 %w6, %w2, %w6; xor.b32 %w7, %w6, 2;\n"
      "st.shared.u16 [%w6], %w0;\nbar.sync 0;\n";
  const std::string stored = "add.u32 %w5, %w5, 1;\nst.shared.u16 [%w6], %w5;\n";
  // Its own half, which two threads read before one of them writes.
  check_passes(written + "ld.shared.u16 %w5, [%w6];\n" + stored);
  check_passes(written + "ld.shared.u16 %w5, [%w6];\nld.shared.u16 %w5, [%w6];\n" + stored);
  // The neighbour's half.
  check_says(written + "ld.shared.u16 %w5, [%w7];\n" + stored, "a race in shared memory");
  check_says(written + "ld.shared.u16 %w5, [%w6];\nld.shared.u16 %w5, [%w7];\n" + stored,
             "a race in shared memory");
}

TEST_CASE("ptx watch: races in global memory, of threads and of blocks") {
  check_passes("st.global.u64 [%d1], %d0;\n", {1, 64});
  check_says("st.global.u32 [%d0], %w0;\n", "a race in global memory, byte 0 of 512", {1, 64});
  check_says("mov.u32 %w5, %ctaid.x;\nst.global.u32 [%d1], %w5;\n", "of block 1 writes", {2, 32});
  check_says(
      "mov.u32 %w5, %ctaid.x; setp.eq.u32 %p0, %w5, 0;\n@%p0 st.global.u32 [%d1], 8;\n"
      "ld.global.u32 %w6, [%d1];\n",
      "of block 1 reads", {2, 32});
  // A barrier does not order blocks.
  check_says("bar.sync 0;\nmov.u32 %w5, %ctaid.x;\nst.global.u32 [%d1], %w5;\nbar.sync 0;\n",
             "a race in global memory", {2, 32});
}

TEST_CASE("ptx watch: launches beyond what a device takes") {
  check_passes("", {1, 1024});
  check_says("", "1056 threads a block", {1, 1056});
  check_says("", "a grid of 0 blocks", {0, 32});
  check_says(".shared .b8 big[48700];\n", "bytes of shared memory, a block has 49152", {1, 32});
  std::string text = kernel_text(1, kWatched + std::string("ret;\n"));
  text.insert(text.find("{"), ".maxntid 64, 1, 1\n");
  std::vector<Array> arrays = {Array(64)};
  CHECK(fault_of([&] { run_kernel(text, arrays, {1, 64}); }) == "");
  CHECK(fault_of([&] { run_kernel(text, arrays, {1, 96}); }) != "");
}

TEST_CASE("ptx watch: more registers than a multiprocessor has") {
  const Module module(kernel_text(0, "ret;\n"));
  Code code = decode(module, "k");
  Memory memory;
  GlobalCells cells;
  const auto run = [&](int registers, int threads) {
    code.registers = registers;
    Launch launch{code, 1, threads, {}, memory, cells};
    return fault_of([&] { run_grid(launch); });
  };
  CHECK(run(64, 1024) == "");
  CHECK(run(65, 1024).find("registers a block") != std::string::npos);
  CHECK(run(255, 256) == "");
}

TEST_CASE("ptx watch: a fault names kernel, block, warp and line") {
  const std::string said = fault("ld.global.u64 %d2, [%d0+512];\n", {2, 32});
  CAPTURE(said);
  CHECK(said.starts_with("kernel k, block 0, warp 0, line 11: thread 0: a load"));
}

}  // namespace keel::ptx
