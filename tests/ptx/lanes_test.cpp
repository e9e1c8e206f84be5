// Operations of lanes together: shuffles and votes by their definitions, and who must be there.
#include "tests/ptx/check_op.h"
#include "tests/ptx/groups.h"

namespace keel::ptx {
namespace {

Array filled(std::uint64_t value) { return Array(32, value); }

Array numbers() {
  Array all;
  for (std::uint64_t i = 0; i < 32; ++i) all.push_back(100 + i);
  return all;
}

// In segments of `width` lanes as CUDA's functions have them: c is clamp and segment in one.
void check_segments(int width) {
  CAPTURE(width);
  const std::uint64_t segment = std::uint64_t(32 - width) << 8;
  for (int by = 0; by < 32; ++by) {
    CAPTURE(by);
    const auto shuffle = [&](const char* mode, std::uint64_t clamp, int result) {
      return results_of(
          std::string("shfl.sync.") + mode + ".b32",
          {numbers(), filled(std::uint64_t(by)), filled(segment | clamp), filled(~0u)}, result);
    };
    const Array up = shuffle("up", 0, 0), down = shuffle("down", 31, 0),
                cross = shuffle("bfly", 31, 0), index = shuffle("idx", 31, 0),
                inside = shuffle("down", 31, 1);
    for (int lane = 0; lane < 32; ++lane) {
      const int first = lane / width * width, last = first + width - 1;
      const auto of = [&](int from, bool is_within) {
        return std::uint64_t(100 + (is_within ? from : lane));
      };
      CHECK(up[std::size_t(lane)] == of(lane - by, lane - by >= first));
      CHECK(down[std::size_t(lane)] == of(lane + by, lane + by <= last));
      CHECK(inside[std::size_t(lane)] == (lane + by <= last));
      CHECK(cross[std::size_t(lane)] == of(lane ^ by, (lane ^ by) <= last));
      CHECK(index[std::size_t(lane)] == of(first + by % width, true));
    }
  }
}

void check_votes() {
  for (const std::uint32_t yes : {0u, 1u, 0x80000000u, 0xffffffffu, 0x12345678u}) {
    CAPTURE(yes);
    Array predicates;
    for (int lane = 0; lane < 32; ++lane) predicates.push_back(yes >> lane & 1);
    const std::vector<Array> columns = {predicates, filled(~0u)};
    CHECK(results_of("vote.sync.any.pred", columns) == filled(yes != 0));
    CHECK(results_of("vote.sync.all.pred", columns) == filled(yes == ~0u));
    CHECK(results_of("vote.sync.ballot.b32", columns) == filled(yes));
  }
}

// A kernel whose lanes from 16 on go another way before they come to the shuffle.
std::string parted(const std::string& mask, const std::string& shuffle) {
  return kernel_text(
      1,
      ".reg .pred %p<4>; .reg .b32 %w<9>; .reg .b64 %d<4>;\n"
      "mov.u32 %w0, %tid.x; setp.lt.u32 %p0, %w0, 16; mov.u32 %w1, " +
          mask + ";\nshfl.sync.idx.b32 %w5, %w0, 0, 31, -1;\n" + shuffle +
          "ld.param.u64 %d0, [p0]; mul.wide.u32 %d1, %w0, 8; add.s64 %d0, %d0, %d1;\n"
          "st.global.u32 [%d0], %w2; ret;\n");
}

}  // namespace

void check_shuffles() {
  for (const int width : {32, 16, 8, 4, 2, 1}) check_segments(width);
  check_votes();
  applied().insert("bar.warp.sync");  // in watches_test.cpp
}

TEST_CASE("ptx: shuffles and votes") { check_shuffles(); }

TEST_CASE("ptx: half a warp shuffles by itself, with a mask that names it") {
  std::vector<Array> arrays = {Array(32)};
  run_kernel(parted("0xffff",
                    "mov.u32 %w2, 7; @!%p0 bra L;\n"
                    "shfl.sync.idx.b32 %w2, %w0, 3, 31, %w1;\nL:\n"),
             arrays, {});
  for (int lane = 0; lane < 32; ++lane) CHECK(arrays[0][std::size_t(lane)] == (lane < 16 ? 3 : 7));
}

TEST_CASE("ptx: lanes that come later by another way are waited for") {
  std::vector<Array> arrays = {Array(32)};
  // The upper lanes' way lies beyond the shuffle, and leads back to it.
  run_kernel(parted("-1",
                    "@!%p0 bra L;\nB:\nshfl.sync.down.b32 %w2, %w0, 1, 31, %w1;\nbra E;\n"
                    "L: add.u32 %w3, %w0, 5; bra B;\nE:\n"),
             arrays, {});
  for (int lane = 0; lane < 32; ++lane) {
    CHECK(int(arrays[0][std::size_t(lane)]) == std::min(lane + 1, 31));
  }
}

TEST_CASE("ptx: wrong masks are named") {
  std::vector<Array> arrays = {Array(32)};
  const auto fault = [&](const std::string& mask, const std::string& shuffle) {
    return fault_of([&] { run_kernel(parted(mask, shuffle), arrays, {}); });
  };
  const std::string lower =
      "mov.u32 %w2, 7; @!%p0 bra L;\nshfl.sync.idx.b32 %w2, %w0, {}, 31, "
      "%w1;\nL:\n";
  const auto from = [&](const char* lane) {
    std::string text = lower;
    return text.replace(text.find("{}"), 2, lane);
  };
  CHECK(fault("-1", from("3")).find("divergent warp 0") != std::string::npos);
  CHECK(fault("0xff", from("3")).find("lane 8 is not in its own mask") != std::string::npos);
  CHECK(fault("0xffff", from("20")).find("which its mask 0xffff does not name") !=
        std::string::npos);
  CHECK(fault("-1", "@!%p0 ret;\nshfl.sync.idx.b32 %w2, %w0, 3, 31, %w1;\n")
            .find("names lanes that are absent or have returned") != std::string::npos);
  const std::string mixed =
      "selp.b32 %w1, 0xffff, -1, %p0;\nshfl.sync.idx.b32 %w2, %w0, 3, 31, %w1;\n";
  CHECK(fault("-1", mixed).find("give different masks") != std::string::npos);
}

}  // namespace keel::ptx
