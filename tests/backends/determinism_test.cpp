// The number of threads changes no bit of what a backend computes.
#include <cstring>

#include "src/ops/conv2d.h"
#include "src/ops/matmul.h"
#include "src/ops/pool2d.h"
#include "tests/backends/bounds.h"

namespace keel::test {
namespace {

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), std::size_t(a.bytes())) == 0;
}

// CHECKs that values and gradients have the same bytes with 1, 2, 3 and 13 threads; 13 is more than
// primitives are created for.
void check_threads(OpCase c, bool optimize = false) {
  c.optimize = optimize;
  // One backend at a time: of several that are alive, the one with the fewest threads limits all.
  const auto run_on = [&](int threads) {
    const auto made = make_backend(default_backend(), {threads});
    Backend& backend = *made;
    return run_case(backend, c, DType::kF32);
  };
  const Results expected = run_on(1);
  for (int threads : {2, 3, 13}) {
    CAPTURE(threads);
    const Results got = run_on(threads);
    for (const auto& [name, value] : expected) {
      CAPTURE(name);
      CHECK(same_bytes(got.at(name), value));
    }
  }
}

TEST_CASE("backend: matrix products do not depend on the thread count") {
  const std::int64_t sizes[][3] = {{128, 784, 100}, {128, 1000, 10}, {4, 800, 500}, {3, 2000, 5},
                                   {1, 5000, 1},    {1000, 33, 7},   {1, 300, 400}, {257, 65, 129}};
  for (const auto& [m, k, n] : sizes) {
    CAPTURE(m);
    CAPTURE(k);
    check_threads(random_case({{m, k}, {k, n}, {n}}, [](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::matmul(g, v[0], v[1], {.bias = v[2]})};
    }));
  }
  check_threads(
      random_case({{6, 20, 300}, {6, 300, 30}}, [](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::matmul(g, v[0], v[1])};
      }));
}

TEST_CASE("backend: convolutions do not depend on the thread count" * doctest::test_suite("slow")) {
  struct Row {
    Shape x, weight;
    std::int64_t stride, padding;
  };
  const Row rows[] = {
      {{8, 1, 28, 28}, {20, 1, 5, 5}, 1, 0}, {{7, 20, 12, 12}, {50, 20, 5, 5}, 1, 0},
      {{2, 3, 9, 9}, {5, 3, 3, 3}, 2, 1},    {{1, 16, 20, 20}, {32, 16, 1, 1}, 1, 0},
      {{3, 4, 7, 7}, {4, 4, 3, 3}, 1, 4},    {{1, 3, 40, 40}, {2, 3, 3, 3}, 1, 1}};
  for (const Row& row : rows) {
    CAPTURE(row.x.text());
    const Build build = [row](Graph& g, const std::vector<Value>& v) {
      return std::vector{
          ops::conv2d(g, v[0], v[1], {.stride = row.stride, .padding = row.padding})};
    };
    check_threads(random_case({row.x, row.weight}, build));
    check_threads(random_case({row.x, row.weight}, build), true);  // channels last
  }
}

TEST_CASE("backend: pooling does not depend on the thread count") {
  for (auto pool : {ops::max_pool2d, ops::avg_pool2d}) {
    const Build build = [pool](Graph& g, const std::vector<Value>& v) {
      return std::vector{pool(g, v[0], 3, 2)};
    };
    check_threads(random_case({{3, 20, 25, 24}}, build));
    check_threads(random_case({{3, 20, 25, 24}}, build), true);
  }
}

}  // namespace
}  // namespace keel::test
