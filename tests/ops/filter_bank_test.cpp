// The filters of DRAW's attention.
#include "src/ops/filter_bank.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/ops/matmul.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

OpCase bank_case(Tensor p, const FilterBankAttrs& attrs) {
  OpCase c;
  c.inputs.push_back(std::move(p));
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const auto bank = ops::filter_bank(g, v[0], attrs);
    return std::vector{bank.fx, bank.fy};
  };
  return c;
}

TEST_CASE("filter_bank: two narrow filters stand where centre and stride say") {
  // 7 columns: g = 8/2 (g~ + 1) = 4, delta = (7 - 1) / 1 / 3 = 2, so mu = 3 and 5. 5 rows: g = 3.
  const double narrow = 2 * std::log(0.05);
  OpCase c = bank_case(f64({1, 5}, {0, 0, narrow, -std::log(3.0), 9}),
                       {.filters = 2, .rows = 5, .columns = 7});
  const Results results = run_reference(c);
  Tensor fx(DType::kF64, {1, 2, 7}), fy(DType::kF64, {1, 2, 5});
  fx.as<double>()[2] = fx.as<double>()[7 + 4] = fy.as<double>()[1] = fy.as<double>()[5 + 3] = 1;
  check_close(results.at("y0"), fx, 1e-7);
  check_close(results.at("y1"), fy, 1e-7);
}

TEST_CASE("filter_bank: the grid of the re-implementation counts pixels from 0") {
  // g = 7/2 (g~ + 1) = 4 for g~ = 1/7, and the same stride: places 3 and 5 of 0 to 6.
  const double narrow = 2 * std::log(0.05);
  OpCase c = bank_case(f64({1, 5}, {1.0 / 7, 1.0 / 7, narrow, -std::log(3.0), 0}),
                       {.filters = 2, .rows = 7, .columns = 7, .grid = FilterGrid::kRelease});
  const Results results = run_reference(c);
  Tensor fx(DType::kF64, {1, 2, 7});
  fx.as<double>()[3] = fx.as<double>()[7 + 5] = 1 / (1 + 1e-4);
  check_close(results.at("y0"), fx, 1e-12);
  check_close(results.at("y1"), fx, 1e-12);
}

TEST_CASE("filter_bank: rows of filters sum to 1, and to 0 beside the image") {
  OpCase c = bank_case(f64({2, 5}, {0.1, -0.2, 0.5, -0.5, 0, 9, 0, -1, -3, 0}),
                       {.filters = 5, .rows = 28, .columns = 28});
  const Results results = run_reference(c);
  for (const char* name : {"y0", "y1"}) {
    for (std::int64_t i = 0; i < 10; ++i) {
      double sum = 0;
      for (std::int64_t a = 0; a < 28; ++a) sum += results.at(name).at(28 * i + a);
      const bool is_beside = i >= 5 && name == std::string_view("y0");
      CHECK(sum == doctest::Approx(is_beside ? 0 : 1).epsilon(1e-6));
    }
  }
}

TEST_CASE("filter_bank: 28 narrow filters in the middle, a pixel apart, read the image itself") {
  const double narrow = 2 * std::log(0.05);
  OpCase c;
  c.inputs.push_back(f64({1, 5}, {0, 0, narrow, 0, 0}));
  c.inputs.push_back(random_normal({1, 28, 28}, 1));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const auto bank = ops::filter_bank(g, v[0], {.filters = 28, .rows = 28, .columns = 28});
    const Value rows = ops::matmul(g, bank.fy, v[1]);
    return std::vector{ops::matmul(g, rows, bank.fx, {.transpose_b = true})};
  };
  check_close(run_reference(c).at("y0"), c.inputs[1], 1e-7);
}

TEST_CASE("filter_bank: gradients") {
  for (const FilterGrid grid : {FilterGrid::kPaper, FilterGrid::kRelease}) {
    for (const std::int64_t filters : {2, 3}) {
      const FilterBankAttrs attrs{.filters = filters, .rows = 6, .columns = 9, .grid = grid};
      const OpCase both = bank_case(random_normal({3, 5}, 1, 0, 0.4), attrs);
      gradcheck(both);
      for (std::size_t wanted : {0, 1}) {
        OpCase one;
        one.inputs.push_back(both.inputs[0].clone());
        one.build = [&](Graph& g, const std::vector<Value>& v) {
          return std::vector{both.build(g, v)[wanted]};
        };
        gradcheck(one);
      }
    }
  }
}

TEST_CASE("filter_bank: refusals") {
  const auto bank = [](const FilterBankAttrs& attrs) -> Build {
    return [attrs](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::filter_bank(g, v[0], attrs).fx};
    };
  };
  const char* op = "filter_bank";
  check_op_refused({{DType::kI32, {4, 5}}}, bank({}), op, "p: expected a floating type, got i32");
  check_op_refused({{DType::kF32, {4, 6}}}, bank({}), op, "p: expected (n, 5), got (4, 6)");
  check_op_refused({{DType::kF32, {5}}}, bank({}), op, "p: expected (n, 5), got (5)");
  check_op_refused({{DType::kF32, {4, 5}}}, bank({.filters = 1}), op,
                   "filters: expected 2 or more, got 1");
  check_op_refused({{DType::kF32, {4, 5}}}, bank({.rows = 0}), op,
                   "image: expected 1 pixel or more each way, got 0 x 28");
}

}  // namespace
}  // namespace keel::test
