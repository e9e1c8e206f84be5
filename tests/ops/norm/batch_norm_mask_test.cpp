// Batch norm under a row mask: padding that is left out, and padding that counts as rows of the
// mean, as in the release of Shen et al. 2020.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/backends.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/reduce.h"
#include "src/ops/stop_gradient.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_golden.h"
#include "tests/support/norm_template.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

constexpr ColumnPadding kPaddings[]{ColumnPadding::kExact, ColumnPadding::kPnCode};

BatchNormAttrs with(ColumnPadding padding, BatchNormAttrs attrs = {}) {
  attrs.padding = padding;
  return attrs;
}

// A batch norm of x under a mask; running mean 0.5 and variance 2. Results: "y0" = y, "y1" = mean',
// "y2" = var' in training, and the gradients "d0" of x, "d1" of gain, "d2" of bias.
struct Masked {
  Tensor x, gain, bias;
  std::vector<std::uint8_t> mask;
  BatchNormAttrs attrs = {};
  bool composed = false;  // x is overwritten by elementary ops, and the norm knows no mask

  Masked(Tensor values, std::vector<std::uint8_t> row_mask, const BatchNormAttrs& norm)
      : x(std::move(values)),
        gain(random_normal({x.shape()[1]}, 2, 1, 0.3)),
        bias(random_normal({x.shape()[1]}, 3)),
        mask(std::move(row_mask)),
        attrs(norm) {}

  OpCase op_case(bool with_states = true) const {
    OpCase c;
    for (const Tensor* t : {&x, &gain, &bias}) c.inputs.push_back(t->clone());
    c.build = [this, with_states](Graph& g, const std::vector<Value>& in) {
      const auto state = [&](double v) {
        return g.constant(random_normal(gain.shape(), 4, v, 0).to(g.type(in[0]).dtype));
      };
      const Value masked = composed ? Value{} : g.constant(row_mask());
      const Value y = ops::batch_norm(g, composed ? overwritten(g, in[0]) : in[0], {in[1], in[2]},
                                      {state(0.5), state(2), masked}, attrs);
      if (!attrs.training || !with_states) return std::vector{y};
      return std::vector{y, ops::stop_gradient(g, y.at(BatchNormOutput::kNextRunningMean)),
                         ops::stop_gradient(g, y.at(BatchNormOutput::kNextRunningVar))};
    };
    return c;
  }
  Results run(const std::string& backend, int threads = 2) const {
    const bool is_reference = backend == "reference";
    return run_case(*make_backend(backend, {threads}), op_case(),
                    is_reference ? DType::kF64 : DType::kF32);
  }

 private:
  Tensor row_mask() const { return Tensor::of<std::uint8_t>({std::ssize(mask)}, mask); }
  // x * m + mean of the kept rows * (1 - m)
  Value overwritten(Graph& g, Value v) const {
    const DType dtype = g.type(v).dtype;
    const Value m = g.constant(ops_mask(dtype)), one = g.constant(1, dtype);
    const Value kept = ops::mul(g, v, m), n = ops::sum(g, m, {0}, true);
    const Value mean = ops::div(g, ops::sum(g, kept, {0}, true), n);
    return ops::add(g, kept, ops::mul(g, mean, ops::sub(g, one, m)));
  }
  Tensor ops_mask(DType dtype) const {
    Tensor t(DType::kF64, Shape{std::ssize(mask), 1});
    std::ranges::copy(mask, t.as<double>().begin());
    return t.to(dtype);
  }
};

// Long runs of kept rows, short ones, and blocks without any.
std::vector<std::uint8_t> long_mask(int rows) {
  std::vector<std::uint8_t> mask;
  for (int row = 0; row < rows; ++row) {
    mask.push_back(row % 7 != 3 && row % 100 < 80 && (row < 2000 || row > 4000));
  }
  return mask;
}

void set_rows_left_out(Masked& of, double value) {
  const auto channels = std::size_t(of.x.shape()[1]);
  for (std::size_t row = 0; row < of.mask.size(); ++row) {
    if (of.mask[row] == 0) std::fill_n(&of.x.as<double>()[row * channels], channels, value);
  }
}

void check_example(ColumnPadding padding, std::string_view section) {
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    const auto input = [](std::string_view key) { return golden("inputs", key); };
    NormData data{input("x"), input("dy"), input("gamma"), input("beta"), {}, 1e-5};
    for (double v : {0.0, 1.0}) data.state.push_back(random_normal({6}, 5, v, 0));
    const auto build = [&](Graph& g, const NormInputs& in, double eps) {
      const Value mask = g.constant(Tensor::of<std::uint8_t>({4}, {1, 0, 1, 1}));
      return ops::batch_norm(g, in.x, {in.gain, in.bias}, {in.state[0], in.state[1], mask},
                             with(padding, {.eps = eps}));
    };
    const NormResult result = run_norm(*make_backend(backend), build, data);
    for (const auto& [got, key] : {std::pair{&result.outputs[BatchNormOutput::kY], "y"},
                                   {&result.gradients[BatchNormGradient::kDx], "dx"}}) {
      const Tensor expected = golden(section, key);
      CAPTURE(std::string(key));
      for (std::int64_t i = 0; i < 24; ++i) {
        CAPTURE(i);
        CHECK(std::abs(got->at(i) - expected.at(i)) <= 1e-5);
      }
    }
  }
}

}  // namespace

TEST_CASE("batch_norm: worked examples with a row of padding") {
  check_example(ColumnPadding::kExact, "BatchNorm row 1 masked (exact)");
  check_example(ColumnPadding::kPnCode, "BatchNorm row 1 masked (PN-code)");
}

TEST_CASE("batch_norm: padding that is left out might as well not be there" *
          doctest::test_suite("slow")) {
  for (const BatchNormAttrs& attrs : {BatchNormAttrs{}, BatchNormAttrs{.training = false},
                                      BatchNormAttrs{.unbiased = true, .running_unbiased = true}}) {
    const auto build = [&](Graph& g, const NormInputs& in, Value mask) {
      return ops::batch_norm(g, in.x, {in.gain, in.bias}, {in.state[0], in.state[1], mask}, attrs);
    };
    check_row_mask(build, 2);
  }
}

TEST_CASE("batch_norm: the backward under a mask is the derivative") {
  for (const ColumnPadding padding : kPaddings) {
    for (bool unbiased : {false, true}) {
      for (bool training : {true, false}) {
        const BatchNormAttrs attrs{.eps = 1e-2, .unbiased = unbiased, .training = training};
        gradcheck(
            Masked(random_normal({7, 3}, 1, 0.5, 2), {1, 0, 1, 1, 0, 1, 1}, with(padding, attrs))
                .op_case(false));
      }
    }
  }
}

TEST_CASE("batch_norm: pn_code overwrites padding by the mean, then knows of no mask" *
          doctest::test_suite("slow")) {
  for (const auto& [rows, channels] : {std::pair{7, 3}, {300, 70}, {4099, 65}}) {
    for (bool unbiased : {false, true}) {
      const BatchNormAttrs attrs{.unbiased = unbiased, .running_unbiased = unbiased};
      Masked masked(random_normal({rows, channels}, 1, 3, 2), long_mask(rows),
                    with(ColumnPadding::kPnCode, attrs));
      Masked composed = Masked(masked.x.clone(), masked.mask, attrs);
      composed.composed = true;
      const Results expected = composed.run("reference");
      set_rows_left_out(masked, NAN);
      for (const std::string& backend : tested_backends()) {
        CAPTURE(backend);
        CAPTURE(rows);
        const Results got = masked.run(backend);
        for (const auto& [name, value] : expected) {
          CAPTURE(name);
          check_close(got.at(name), value, backend == "reference" ? 1e-12 : 4e-6);
        }
      }
    }
  }
}

TEST_CASE("batch_norm: in evaluation pn_code gives padding the bias") {
  for (const std::string& backend : tested_backends()) {
    const Masked masked(f64({3, 1}, {1, 2, 3}), {1, 0, 1},
                        with(ColumnPadding::kPnCode, {.training = false}));
    const Results got = masked.run(backend);
    const double rstd = masked.gain.at(0) / std::sqrt(2 + 1e-5), bias = masked.bias.at(0);
    check_close(got.at("y0"), f64({3, 1}, {0.5 * rstd + bias, bias, 2.5 * rstd + bias}), 1e-6);
    CHECK(got.at("d0").at(1) == 0);
  }
}

TEST_CASE("batch_norm: a batch without a kept row changes no state") {
  for (const ColumnPadding padding : kPaddings) {
    for (const std::string& backend : tested_backends()) {
      const Masked masked(random_normal({3, 2}, 1), {0, 0, 0}, with(padding));
      const Results got = masked.run(backend);
      check_close(got.at("y1"), f64({2}, {0.5, 0.5}), 0);
      check_close(got.at("y2"), f64({2}, {2, 2}), 0);
      check_close(got.at("d1"), f64({2}, {0, 0}), 0);
      for (std::int64_t i = 0; i < 6; ++i) {
        CHECK(got.at("y0").at(i) ==
              doctest::Approx(padding == ColumnPadding::kExact ? 0 : masked.bias.at(i % 2))
                  .epsilon(1e-6));
        CHECK(got.at("d0").at(i) == 0);
      }
    }
  }
}

TEST_CASE("batch_norm: one kept row has no variance, biased or not") {
  for (const std::string& backend : tested_backends()) {
    const Masked masked(f64({3, 1}, {1, 5, 3}), {0, 1, 0},
                        {.keep = 0.5, .unbiased = true, .running_unbiased = true});
    const Results got = masked.run(backend);
    check_close(got.at("y0"), f64({3, 1}, {0, masked.bias.at(0), 0}), 1e-6);
    check_close(got.at("y1"), f64({1}, {2.75}), 0);
    check_close(got.at("y2"), f64({1}, {1}), 0);
    check_close(got.at("d0"), f64({3, 1}, {0, 0, 0}), 1e-6);
  }
}

TEST_CASE("batch_norm: what padding holds changes no bit, nor does the thread count" *
          doctest::test_suite("slow")) {
  for (const ColumnPadding padding : kPaddings) {
    for (const std::string& backend : tested_backends()) {
      Masked masked(random_normal({4099, 65}, 1, 3, 2), long_mask(4099), with(padding));
      const Results expected = masked.run(backend, 1);
      for (int threads : {1, 2, 3, 7}) {
        set_rows_left_out(masked, threads == 1 ? NAN : 1e30 * threads);
        const Results got = masked.run(backend, threads);
        for (const auto& [name, value] : expected) {
          CAPTURE(name);
          const Tensor& other = got.at(name);
          CHECK(std::memcmp(other.data(), value.data(), std::size_t(value.bytes())) == 0);
        }
        if (backend == "reference") break;
      }
    }
  }
}

TEST_CASE("batch_norm: refusals of masks") {
  const auto refused = [](const TensorType& x, const TensorType& mask, std::string_view message) {
    const TensorType channels{DType::kF32, {3}};
    check_op_refused(
        {x, channels, channels, mask},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::batch_norm(g, in[0], {}, {in[1], in[2], in[3]}, {})};
        },
        "batch_norm", message);
  };
  const TensorType x{DType::kF32, {4, 3}}, mask{DType::kU8, {4}};
  refused(x, {DType::kU8, {3}}, "mask: expected (4), got (3)");
  refused(x, {DType::kI32, {4}}, "mask: expected u8, got i32");
  refused({DType::kF32, {4, 3, 1, 1}}, mask, "mask: expected none for images, got (4)");
}

}  // namespace keel::test
