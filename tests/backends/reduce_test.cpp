// Sums, means and maxima against the reference backend.
#include "src/ops/reduce.h"

#include <limits>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

using Axes = std::vector<std::int64_t>;

struct ReduceRow {
  Shape shape;
  Axes axes;
};

// Rows, columns, what lies between, several runs of axes, sizes of 1 and 0, and lengths at which an
// axis is cut into blocks.
std::vector<ReduceRow> rows() {
  std::vector<ReduceRow> rows = {{{2, 3, 4, 5}, {0, 2}},
                                 {{2, 3, 4, 5}, {1, 3}},
                                 {{4, 16, 7, 7}, {0, 2, 3}},
                                 {{2, 3, 2, 3, 2}, {0, 2, 4}},
                                 {{5, 1, 7}, {1}},
                                 {{5, 1, 7}, {0, 1, 2}},
                                 {{1, 1}, {0}},
                                 {{}, {}},
                                 {{4099, 33}, {0}},
                                 {{300, 2000}, {0}},
                                 {{3, 3000}, {0}},
                                 {{100000, 3}, {0}},
                                 {{2, 5000, 40}, {1}},
                                 {{3, 70000}, {1}},
                                 {{400000}, {0}},
                                 {{70, 3, 5}, {2}},
                                 {{200, 300, 2}, {0, 2}},
                                 {{1000, 2, 3}, {1}}};
  return rows;
}

OpCase case_of(const ReduceRow& row, const Build& build) {
  OpCase c;
  c.inputs.push_back(random_f32(row.shape, 1));
  c.build = build;
  return c;
}

TEST_CASE("backend reduce: sums and means over any axes" * doctest::test_suite("slow")) {
  for_each_target([] {
    for (const ReduceRow& row : rows()) {
      CAPTURE(row.shape.text());
      CAPTURE(attr_text(row.axes));
      check_agrees(case_of(row, [&](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::sum(g, v[0], row.axes), ops::mean(g, v[0], row.axes, true)};
      }));
    }
  });
}

TEST_CASE("backend reduce: maxima are exact, and the first of equals gets the gradient" *
          doctest::test_suite("slow")) {
  for_each_target([] {
    for (const ReduceRow& row : rows()) {
      CAPTURE(row.shape.text());
      CAPTURE(attr_text(row.axes));
      OpCase c = case_of(row, [&](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::max(g, v[0], row.axes)};
      });
      // Few different values, so that there are ties.
      for (double& x : c.inputs[0].as<double>()) x = std::round(2 * x);
      const Results got = run_tested(c), expected = run_reference(c);
      for (const char* name : {"y0", "d0"}) {
        CAPTURE(name);
        check_within(got.at(name), expected.at(name), [](auto) { return 0.0; });
      }
    }
  });
}

TEST_CASE("backend reduce: nothing adds up to 0") {
  for (const ReduceRow& row :
       {ReduceRow{{0, 5}, {0}}, ReduceRow{{5, 0}, {1}}, ReduceRow{{2, 0, 3}, {1}}}) {
    OpCase c = case_of(row, [&](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::sum(g, v[0], row.axes)};
    });
    check_agrees(c);
  }
}

TEST_CASE("backend reduce: NaN, infinities and sums that pass beyond float") {
  const double big = 3e38f;
  const double infinity = std::numeric_limits<double>::infinity();
  for_each_target([&] {
    for (const std::int64_t n : {5, 37, 300}) {
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        OpCase c;
        c.inputs.push_back(random_f32({4, n}, 1));
        double* x = c.inputs[0].as<double>().data();
        x[at] = NAN;
        x[n + at] = infinity;
        x[2 * n + at] = -infinity;
        for (std::int64_t i = 0; i + 1 < n; i += 2) {
          x[3 * n + i] = i < n / 2 ? big : -big;
          x[3 * n + i + 1] = x[3 * n + i];
        }
        c.gradients = false;
        c.build = [](Graph& g, const std::vector<Value>& v) {
          const Value t = v[0];
          return std::vector{ops::sum(g, t, {1}), ops::max(g, t, {1}), ops::sum(g, t, {0}),
                             ops::max(g, t, {0})};
        };
        const Results got = run_tested(c), expected = run_reference(c);
        for (const auto& [name, y] : expected) {
          CAPTURE(name);
          // Sums that pass `big` on the way lose what is 2^-53 of it.
          const bool is_column = name == "y2";
          check_within(got.at(name), y, [&](auto i) {
            const double size = is_column || i == 3 ? big : std::abs(y.at(i));
            return name == "y1" || name == "y3" ? 0 : kEps * std::abs(y.at(i)) + 0x1p-50 * size;
          });
        }
      }
    }
  });
}

}  // namespace
}  // namespace keel::test
