// Races: every norm and attention, forward and backward, give the same bits whatever the order in
// which blocks run, and the threads between barriers.
#include <doctest/doctest.h>

#include <cstring>

#include "backends/cuda/emulator/simt.h"
#include "tests/backends/cuda/norm_step.h"
#include "tests/support/attention_step.h"

namespace keel::cuda {
namespace {

// The bits of what `step` computes are those of threads in order.
template <class Step>
void check_orders(const Step& step, std::uint64_t seeds) {
  const auto expected = step();
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    simt::set_order(seed);
    const auto got = step();
    simt::set_order(0);
    REQUIRE(got.size() == expected.size());
    for (const auto& [key, value] : expected) {
      CAPTURE(key);
      const Tensor& other = got.at(key);
      CHECK(std::memcmp(other.data(), value.data(), std::size_t(value.bytes())) == 0);
    }
  }
}

void check_orders(const std::string& name, const Shape& shape, std::uint64_t seeds = 20) {
  CAPTURE(name);
  const nn::Norm norm = nn::Norm::parse(name);
  check_orders([&] { return norm_step(norm, shape); }, seeds);
}

TEST_CASE("cuda: no norm depends on the order of threads, narrow rows" *
          doctest::test_suite("slow")) {
  for (const std::string& name : norms_of_rows()) check_orders(name, {9, 12});
}

TEST_CASE("cuda: no norm depends on the order of threads, rows of several warps" *
          doctest::test_suite("slow")) {
  for (const std::string& name : norms_of_rows()) check_orders(name, {3, 260});
}

TEST_CASE("cuda: no norm depends on the order of blocks that share a column" *
          doctest::test_suite("slow")) {
  for (const char* name : {"layernorm", "rmsnorm", "batchnorm", "powernorm"}) {
    check_orders(name, {150, 12});
  }
}

// Teams of threads go through several rows, each at its own pace.
TEST_CASE("cuda: no norm depends on the pace of those that share a block" *
          doctest::test_suite("slow")) {
  for (const char* name : {"layernorm", "rmsnorm"}) check_orders(name, {40, 4100}, 3);
}

TEST_CASE("cuda: no norm of sequences depends on the order of threads") {
  check_orders("instancenorm", {2, 11, 35});
}

TEST_CASE("cuda: no norm of images depends on the order of threads") {
  for (const char* name :
       {"batchnorm", "groupnorm{groups=1}", "instancenorm", "powernorm", "batchrenorm"}) {
    check_orders(name, {2, 4, 5, 7});
  }
}

TEST_CASE("cuda: attention does not depend on the order of threads" * doctest::test_suite("slow")) {
  for (const std::int64_t width : {20, 64, 65, 129}) {
    CAPTURE(width);
    const test::AttentionStep step =
        test::AttentionCase{2, 40, 70, 2, width, true, true, 0.3}.step();
    const auto backend = make_backend("cuda");
    check_orders([&] { return run_attention(*backend, step); }, 5);
  }
}

}  // namespace
}  // namespace keel::cuda
