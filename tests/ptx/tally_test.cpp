// Counts of kernels that are small enough to count by hand.
#include "tests/ptx/check_op.h"

namespace keel::ptx {
namespace {

constexpr const char* kCounted =
    ".reg .pred %p<9>; .reg .b32 %w<20>; .reg .b64 %d<9>; .reg .f32 %f<20>; .reg .f64 %e<9>;\n"
    ".shared .align 16 .b8 m[8192];\n"
    "mov.u32 %w0, %tid.x; ld.param.u64 %d0, [p0]; mov.u32 %w2, m;\n";

// An array whose elements begin at a cache line, of 128 bytes.
Counts counts(const std::string& body, Grid grid = {}) {
  static std::vector<Array> arrays = {Array(2048 + 16)};
  const auto start = reinterpret_cast<std::uintptr_t>(arrays[0].data());
  const std::string align = fmt::format("add.u64 %d0, %d0, {};\n", (128 - start % 128) % 128);
  CAPTURE(body);
  return counts_of(kernel_text(1, kCounted + align + body + "ret;\n"), arrays, grid);
}

std::int64_t of(const Counts& counts, Class type) {
  return counts.instructions[std::size_t(type)];
}

// The address of element `index`, a register, of so many bytes.
std::string element(const char* index, int bytes) {
  return fmt::format("mul.wide.u32 %d1, {}, {}; add.u64 %d1, %d0, %d1;\n", index, bytes);
}

}  // namespace

TEST_CASE("ptx tally: instructions by class") {
  const Counts none = counts("");
  const Counts c = counts(
      "add.rn.f32 %f1, %f1, %f1;\nmul.rn.f32 %f1, %f1, %f1;\nfma.rn.f64 %e1, %e1, %e1, %e1;\n"
      "rcp.approx.ftz.f64 %e3, %e1;\nadd.u64 %d2, %d0, 8;\nadd.s32 %w3, %w0, 1;\n"
      "cvt.rn.f32.s32 %f3, %w3;\ncvt.f64.f32 %e2, %f3;\nshfl.sync.bfly.b32 %w4, %w3, 1, 31, -1;\n"
      "setp.lt.s32 %p1, %w3, 0;\n@%p1 bra END;\ndiv.s32 %w5, %w3, 3;\nrem.u64 %d2, %d2, 3;\n"
      "div.rn.f32 %f1, %f1, %f1;\nEND:\n",
      {2, 64});
  constexpr int kWarps = 4;
  CHECK(of(c, Class::kFloat) == kWarps * (2 + 8));
  CHECK(of(c, Class::kDouble) == kWarps);
  CHECK(of(c, Class::kSpecial) == kWarps);
  CHECK(of(c, Class::kInteger) - kWarps * of(none, Class::kInteger) == kWarps * (2 + 1 + 1 + 60));
  CHECK(of(c, Class::kConversion) == kWarps);
  CHECK(of(c, Class::kWideConversion) == kWarps);
  CHECK(of(c, Class::kShuffle) == kWarps);
  CHECK(of(c, Class::kControl) == kWarps);
  CHECK(of(c, Class::kNothing) == 0);
}

TEST_CASE("ptx tally: an instruction that no lane runs is none") {
  CHECK(of(counts("setp.lt.s32 %p1, %w0, 0;\n@%p1 add.rn.f32 %f1, %f1, %f1;\n"), Class::kFloat) ==
        0);
  CHECK(of(counts("setp.eq.s32 %p1, %w0, 7;\n@%p1 add.rn.f32 %f1, %f1, %f1;\n"), Class::kFloat) ==
        1);
}

TEST_CASE("ptx tally: sectors of neighbours, of a stride, of one address, and misaligned") {
  const auto load = [](const std::string& address) {
    return counts(address + "ld.global.f32 %f1, [%d1];\n");
  };
  const Counts neighbours = load(element("%w0", 4));
  CHECK(neighbours.requests == 1);
  CHECK(neighbours.asked_bytes == 128);
  CHECK(neighbours.read_sectors == 4);
  CHECK(neighbours.wasted_sectors == 0);
  CHECK(neighbours.from_memory == 4);
  const Counts stride = load(element("%w0", 32));
  CHECK(stride.asked_bytes == 128);
  CHECK(stride.read_sectors == 32);
  CHECK(stride.wasted_sectors == 28);
  const Counts same = load("mov.u64 %d1, %d0;\n");
  CHECK(same.asked_bytes == 4);
  CHECK(same.read_sectors == 1);
  CHECK(same.wasted_sectors == 0);
  const Counts shifted = load(element("%w0", 4) + "add.u64 %d1, %d1, 4;\n");
  CHECK(shifted.read_sectors == 5);
  CHECK(shifted.wasted_sectors == 1);
  const Counts fours = counts(element("%w0", 16) +
                              "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d1];\n"
                              "st.global.v4.f32 [%d1], {%f1, %f2, %f3, %f4};\n");
  CHECK(fours.requests == 2);
  CHECK(fours.asked_bytes == 2 * 512);
  CHECK(fours.read_sectors == 16);
  CHECK(fours.written_sectors == 16);
  CHECK(fours.to_memory == 16);
  CHECK(fours.wasted_sectors == 0);
}

TEST_CASE("ptx tally: what is read again, by whom, and what was fetched before") {
  const std::string load = element("%w0", 4) + "ld.global.f32 %f1, [%d1];\n";
  const Counts twice = counts(load + "ld.global.f32 %f2, [%d1];\n", {2, 32});
  CHECK(twice.read_sectors == 16);
  CHECK(twice.from_memory == 4);
  CHECK(twice.again_own == 8);
  CHECK(twice.again_other == 4);
  const Counts fetched = counts(element("%w0", 4) + "prefetch.L2 [%d1];\n" + load);
  CHECK(fetched.from_memory == 4);
  CHECK(fetched.from_earlier == 4);
  CHECK(fetched.again_own == 0);
  const Counts written = counts(element("%w0", 4) + "st.global.u32 [%d1], 7;\n" + load, {1, 32});
  CHECK(written.from_memory == 0);
  CHECK(written.again_own == 4);
  CHECK(counts("st.global.u32 [%d0], 7;\nst.global.u32 [%d0], 7;\n", {1, 1}).to_memory == 1);
}

TEST_CASE("ptx tally: sectors of a pass") {
  Sectors sectors;
  sectors.begin_pass();
  CHECK(sectors.read(5, 0) == Found::kMemory);
  CHECK(sectors.read(5, 1) == Found::kOtherBlock);
  CHECK(sectors.read(5, 1) == Found::kOwnBlock);
  sectors.begin_launch();
  CHECK(sectors.read(5, 1) == Found::kEarlier);
  CHECK(sectors.write(5, 1));
  CHECK(!sectors.write(5, 2));
  sectors.begin_pass();
  CHECK(sectors.read(5, 1) == Found::kMemory);
  CHECK(sectors.prefetch(6));
  CHECK(!sectors.prefetch(6));
  CHECK(sectors.read(6, 1) == Found::kEarlier);
}

TEST_CASE("ptx tally: conflicts of shared memory's banks") {
  // Lanes write words `stride` apart, then read them.
  const auto accesses = [](int stride, const std::string& store, const std::string& load) {
    return counts(fmt::format("mul.lo.s32 %w3, %w0, {}; add.u32 %w3, %w2, %w3;\n", stride) + store +
                  load);
  };
  const auto words = [&](int stride) {
    return accesses(stride, "st.shared.u32 [%w3], %w0;\n", "ld.shared.u32 %w4, [%w3];\n");
  };
  const Counts free = words(4);
  CHECK(free.shared_requests == 2);
  CHECK(free.shared_cycles == 2);
  CHECK(free.conflicts == 0);
  CHECK(words(8).conflicts == 2);
  CHECK(words(128).shared_cycles == 64);
  CHECK(words(128).conflicts == 62);
  CHECK(words(132).conflicts == 0);
  const Counts same =
      counts("st.shared.u32 [%w2], 5;\nbar.warp.sync -1;\nld.shared.u32 %w4, [%w2];\n");
  CHECK(same.conflicts == 0);
  const Counts fours = accesses(16, "st.shared.v4.u32 [%w3], {%w0, %w0, %w0, %w0};\n",
                                "ld.shared.v4.u32 {%w4, %w5, %w6, %w7}, [%w3];\n");
  CHECK(fours.shared_cycles == 8);
  CHECK(fours.conflicts == 0);
  CHECK(accesses(32, "st.shared.v4.u32 [%w3], {%w0, %w0, %w0, %w0};\n", "").conflicts == 4);
  CHECK(accesses(8, "st.shared.u64 [%w3], %d0;\n", "ld.shared.u64 %d2, [%w3];\n").conflicts == 0);
  CHECK(accesses(16, "st.shared.u64 [%w3], %d0;\n", "").conflicts == 2);
}

TEST_CASE("ptx tally: local memory") {
  const Counts c = counts(
      ".local .align 16 .b8 l[64];\nst.local.u32 [l], %w0;\nld.local.u32 %w3, [l];\n"
      "st.local.v4.u32 [l+16], {%w0, %w0, %w0, %w0};\n");
  CHECK(of(c, Class::kLocal) == 3);
  CHECK(c.local_sectors == 4 + 4 + 16);
}

TEST_CASE("ptx tally: each warp comes to a barrier") {
  CHECK(counts("bar.sync 0;\n", {1, 64}).barriers == 2);
}

}  // namespace keel::ptx
