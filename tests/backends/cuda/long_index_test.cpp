// Kernels with indices of 64 bits, which tensors of more than 2^30 elements get, on small tensors:
// they give the same bits as with 32.
#include "backends/cuda/short_index.h"
#include "src/ops/conv2d.h"
#include "src/ops/elementwise.h"
#include "src/ops/pool2d.h"
#include "tests/backends/cuda/steps.h"
#include "tests/backends/kernel_checks.h"

namespace keel::cuda {
namespace {

using test::OpCase;
using test::random_case;

// All kernels prepared while it lives have indices of 64 bits.
class LongIndices {
 public:
  LongIndices() { most_short_elements = 0; }
  ~LongIndices() { most_short_elements = before_; }

 private:
  std::int64_t before_ = most_short_elements;
};

void check_both(const OpCase& op_case) {
  const auto backend = make_backend("cuda");
  const auto expected = run_case(*backend, op_case, DType::kF32);
  const LongIndices here;
  check_same_bits(run_case(*backend, op_case, DType::kF32), expected);
}

// Steps of every arity that read bytes, four elements at once, one element for many, and write
// both types; fused when optimized.
std::vector<Value> chain(Graph& g, const std::vector<Value>& v) {
  const Value condition = ops::less(g, v[0], v[1]);
  const Value sum = ops::add(g, ops::tanh(g, v[0]), v[1]);
  return {ops::select(g, condition, sum, ops::neg(g, v[1])), condition, ops::exp(g, sum)};
}

TEST_CASE("cuda long indices: element-wise programs, with tails and stretched operands") {
  const std::vector<Shape> pairs[] = {{{31, 17}, {31, 17}},     {{12, 40}, {40}},
                                      {{3, 257}, {3, 1}},       {{2, 3, 1, 13}, {3, 4, 1}},
                                      {{2, 1, 3, 1, 2}, {1, 2, 1, 3, 2}}, {{}, {5, 7}},
                                      {{1, 4099}, {1, 1}},      {{0, 3}, {3}}};
  for (const auto& shapes : pairs) {
    CAPTURE(shapes[0].text());
    CAPTURE(shapes[1].text());
    OpCase c = random_case(shapes, chain);
    for (const bool optimize : {false, true}) {
      c.optimize = optimize;
      check_both(c);
    }
  }
}

struct Windows {
  Shape x, weight;
  std::int64_t stride, padding;
};

TEST_CASE("cuda long indices: windows of convolutions, and back") {
  const Windows rows[] = {{{3, 3, 9, 7}, {5, 3, 3, 3}, 1, 1},
                          {{1, 5, 11, 6}, {7, 5, 3, 2}, 3, 1},
                          {{2, 4, 7, 7}, {4, 4, 3, 3}, 1, 4},
                          {{2, 33, 5, 5}, {17, 33, 1, 1}, 2, 0},
                          {{1, 1, 1, 1}, {1, 1, 1, 1}, 1, 0}};
  for (const Windows& row : rows) {
    CAPTURE(row.x.text());
    CAPTURE(row.weight.text());
    check_both(random_case({row.x, row.weight, {row.weight[0]}},
                           [&row](Graph& g, const std::vector<Value>& v) {
                             const ops::ConvOptions options{v[2], row.stride, row.padding};
                             return std::vector{ops::conv2d(g, v[0], v[1], options)};
                           }));
  }
}

TEST_CASE("cuda long indices: pooling") {
  const std::pair<Shape, std::pair<std::int64_t, std::int64_t>> rows[] = {
      {{3, 5, 7, 9}, {2, 2}},   {{2, 17, 9, 8}, {3, 2}},  {{1, 4, 7, 7}, {3, 1}},
      {{2, 2, 10, 11}, {2, 3}}, {{1, 3, 15, 16}, {15, 1}}};
  for (const auto& [x, sizes] : rows) {
    CAPTURE(x.text());
    check_both(random_case({x}, [&sizes](Graph& g, const std::vector<Value>& v) {
      const Value largest = ops::max_pool2d(g, v[0], sizes.first, sizes.second);
      return std::vector{largest, largest.at(1),
                         ops::avg_pool2d(g, v[0], sizes.first, sizes.second)};
    }));
  }
}

}  // namespace
}  // namespace keel::cuda
