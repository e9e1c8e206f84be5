// Pooling against the reference backend, as written and channels last.
#include "src/ops/pool2d.h"

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

using Pool = Value (*)(Graph&, Value, std::int64_t, std::int64_t);

OpCase case_of(Tensor x, Pool pool, std::int64_t window, std::int64_t stride) {
  OpCase c;
  c.inputs.push_back(std::move(x));
  c.build = [=](Graph& g, const std::vector<Value>& v) {
    const Value y = pool(g, v[0], window, stride);
    return g.node(y).outputs.size() > 1 ? std::vector{y, y.at(1)} : std::vector{y};
  };
  return c;
}

// As written, and with passes, which make pooling channels last.
void check_both_orders(OpCase c) {
  for (bool optimize : {false, true}) {
    CAPTURE(optimize);
    c.optimize = optimize;
    check_agrees(c);
  }
}

struct PoolRow {
  Shape x;
  std::int64_t window, stride;
};

const PoolRow kRows[] = {{{2, 3, 8, 8}, 2, 2},  {{2, 20, 24, 24}, 2, 2}, {{3, 5, 7, 9}, 2, 2},
                         {{2, 17, 9, 8}, 3, 2}, {{1, 4, 7, 7}, 3, 1},    {{2, 2, 10, 11}, 2, 3},
                         {{1, 1, 1, 1}, 1, 1},  {{2, 32, 5, 5}, 5, 1},   {{1, 3, 15, 16}, 15, 1},
                         {{0, 3, 4, 4}, 2, 2},  {{2, 0, 4, 4}, 2, 2}};

TEST_CASE("backend pool2d: every geometry, with gradients") {
  for (const PoolRow& row : kRows) {
    for (const Pool pool : {ops::max_pool2d, ops::avg_pool2d}) {
      CAPTURE(row.x.text());
      CAPTURE(row.window);
      check_both_orders(case_of(random_f32(row.x, 1), pool, row.window, row.stride));
    }
  }
}

TEST_CASE("backend max_pool2d: the first on ties, infinities, and a NaN that wins") {
  Tensor x(DType::kF64, {1, 2, 4, 6});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.as<double>()[std::size_t(i)] = double(i % 3);
  // The first of a window, and later ones.
  for (int i : {0, 7, 17, 23}) x.as<double>()[std::size_t(i)] = NAN;
  for (int i : {2, 3, 8, 9}) x.as<double>()[std::size_t(i)] = -INFINITY;
  x.as<double>()[4] = INFINITY;
  OpCase c = case_of(std::move(x), ops::max_pool2d, 2, 2);
  c.gradients = false;
  check_both_orders(std::move(c));
}

}  // namespace
}  // namespace keel::test
