// Which kernels of a recorded step wait for which.
#include "backends/cuda/dependencies.h"

#include <doctest/doctest.h>

namespace keel::cuda {
namespace {

std::byte memory[100];

Access reads(int from, int bytes) { return {memory + from, bytes, false}; }
Access writes(int from, int bytes) { return {memory + from, bytes, true}; }

using Kernels = std::vector<std::vector<Access>>;

TEST_CASE("cuda dependencies: a kernel waits for those that write what it reads") {
  const Kernels kernels{{writes(0, 8)}, {writes(8, 8)}, {writes(16, 8)}, {reads(4, 8)}};
  CHECK(dependencies_of(kernels) == Dependencies{{}, {}, {}, {1, 0}});
}

TEST_CASE("cuda dependencies: kernels that read the same do not wait for each other") {
  const Kernels kernels{{reads(0, 8)}, {reads(4, 8)}, {reads(0, 100)}};
  CHECK(dependencies_of(kernels) == Dependencies{{}, {}, {}});
}

TEST_CASE("cuda dependencies: a kernel that writes waits for all that read or write there") {
  const Kernels kernels{{writes(0, 16)}, {reads(0, 4)},   {reads(12, 4)}, {reads(20, 4)},
                        {writes(0, 16)}, {writes(14, 4)}, {writes(30, 4)}};
  CHECK(dependencies_of(kernels) == Dependencies{{}, {0}, {0}, {}, {2, 1}, {4}, {}});
}

TEST_CASE("cuda dependencies: what nobody has written may be read in parts, then written") {
  const Kernels kernels{{reads(10, 4)},  {reads(0, 30)},  {writes(0, 1)},
                        {writes(12, 1)}, {writes(29, 1)}, {reads(29, 1)}};
  CHECK(dependencies_of(kernels) == Dependencies{{}, {}, {1}, {1, 0}, {1}, {4}});
}

TEST_CASE("cuda dependencies: one for which another waits is left out") {
  const Kernels kernels{{writes(0, 4)},
                        {reads(0, 4), writes(4, 4)},
                        {reads(4, 4), writes(8, 4)},
                        {reads(0, 4), reads(4, 4), reads(8, 4)}};
  CHECK(dependencies_of(kernels) == Dependencies{{}, {0}, {1}, {2}});
}

TEST_CASE("cuda dependencies: an output over its own input, and no bytes at all") {
  const Kernels kernels{{reads(0, 4), writes(0, 4)}, {writes(0, 0)}, {reads(2, 4), writes(2, 4)}};
  CHECK(dependencies_of(kernels) == Dependencies{{}, {}, {0}});
}

TEST_CASE("cuda dependencies: a node uses its inputs, outputs and workspace") {
  const TensorType type{DType::kF32, {2}};
  const Binding binding{{{memory, type}, {}}, {{memory + 8, type}}, memory + 32};
  const std::vector<Access> all = accesses_of(binding, 20);
  REQUIRE(all.size() == 3);
  const auto is = [](const Access& a, const Access& b) {
    return a.begin == b.begin && a.bytes == b.bytes && a.is_written == b.is_written;
  };
  CHECK(is(all[0], reads(0, 8)));
  CHECK(is(all[1], writes(8, 8)));
  CHECK(is(all[2], writes(32, 20)));
}

TEST_CASE("cuda dependencies: kernels that do not say what they use run in a row") {
  const Kernel placed = PlacedKernel{[] {}, {reads(0, 4)}}, other = [] {};
  CHECK(dependencies_of(std::vector{placed, placed, placed}) == Dependencies{{}, {}, {}});
  CHECK(dependencies_of(std::vector{placed, other, placed}) == Dependencies{{}, {0}, {1}});
}

}  // namespace
}  // namespace keel::cuda
