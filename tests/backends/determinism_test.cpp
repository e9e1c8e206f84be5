// The number of threads changes no bit of products, convolutions and pooling of any shape.
#include "src/ops/conv2d.h"
#include "src/ops/matmul.h"
#include "src/ops/pool2d.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

// As it is, and with passes, which make images channels last.
void check_orders_of_images(OpCase c) {
  for (const bool optimize : {false, true}) {
    c.optimize = optimize;
    check_thread_counts(c);
  }
}

TEST_CASE("backend: matrix products do not depend on the thread count") {
  const std::int64_t sizes[][3] = {{128, 784, 100}, {128, 1000, 10}, {4, 800, 500}, {3, 2000, 5},
                                   {1, 5000, 1},    {1000, 33, 7},   {1, 300, 400}, {257, 65, 129}};
  for (const auto& [m, k, n] : sizes) {
    CAPTURE(m);
    CAPTURE(k);
    check_thread_counts(
        random_case({{m, k}, {k, n}, {n}}, [](Graph& g, const std::vector<Value>& v) {
          return std::vector{ops::matmul(g, v[0], v[1], {.bias = v[2]})};
        }));
  }
  check_thread_counts(
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
    check_orders_of_images(random_case({row.x, row.weight}, build));
  }
}

TEST_CASE("backend: pooling does not depend on the thread count") {
  for (auto pool : {ops::max_pool2d, ops::avg_pool2d}) {
    const Build build = [pool](Graph& g, const std::vector<Value>& v) {
      return std::vector{pool(g, v[0], 3, 2)};
    };
    check_orders_of_images(random_case({{3, 20, 25, 24}}, build));
  }
}

}  // namespace
}  // namespace keel::test
