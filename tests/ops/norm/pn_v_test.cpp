// PN-V: gradients, agreement of backends, worked example, the running quadratic mean, evaluation,
// masks, refusals.
#include "src/ops/norm/pn_v.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/backends.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_template.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

NormBuild pn_v(PnVAttrs attrs = {}) {
  return [attrs](Graph& g, const NormInputs& in, double eps) mutable {
    attrs.eps = eps;
    return ops::pn_v(g, in.x, {in.gain, in.bias}, {in.state[0], {}}, attrs);
  };
}

Tensor mask_of(std::initializer_list<std::uint8_t> values) {
  return Tensor::of<std::uint8_t>({std::int64_t(values.size())}, values);
}

// y, rstd and psi2' of x (3, 1) = (1, 3, 8), sum of squares 74, with gain 2, bias 0.5, psi2 20.
Results run_three(const std::string& backend, const PnVAttrs& attrs, const Tensor& mask) {
  OpCase c;
  c.inputs.push_back(f64({3, 1}, {1, 3, 8}));
  c.inputs.push_back(mask.clone());
  c.gradients = false;
  c.build = [&](Graph& g, const std::vector<Value>& in) {
    const auto one = [&](double v) { return g.constant(f64({1}, {v}).to(g.type(in[0]).dtype)); };
    const Value y = ops::pn_v(g, in[0], {one(2), one(0.5)}, {one(20), in[1]}, attrs);
    const Value rstd = y.at(PnVOutput::kRstd);
    return attrs.training ? std::vector{y, rstd, y.at(PnVOutput::kNextPsi2)} : std::vector{y, rstd};
  };
  return run_case(*make_backend(backend), c, DType::kF32);
}

// For the mask (1, 1, 1): y is (2, 6, 16) * rstd + 0.5.
void check_three(const PnVAttrs& attrs, double rstd, double psi2) {
  for (const std::string& backend : tested_backends()) {
    const Results got = run_three(backend, attrs, mask_of({1, 1, 1}));
    CHECK(got.at("y0").at(1) == doctest::Approx(6 * rstd + 0.5));
    CHECK(got.at("y1").at(0) == doctest::Approx(rstd));
    REQUIRE(got.contains("y2") == attrs.training);
    if (attrs.training) CHECK(got.at("y2").at(0) == doctest::Approx(psi2));
  }
}

NormSpec pn_v_spec(const PnVAttrs& attrs, NormLayout layout = NormLayout::kColumns) {
  return {.build = pn_v(attrs),
          .layout = layout,
          .states = 1,
          .own_statistics = attrs.training,
          .centred = false};
}

}  // namespace

TEST_CASE("pn_v: tokens" * doctest::test_suite("slow")) { check_norm(pn_v_spec({})); }

TEST_CASE("pn_v: images" * doctest::test_suite("slow")) {
  check_norm(pn_v_spec({}, NormLayout::kImages));
}
TEST_CASE("pn_v: thumbnails" * doctest::test_suite("slow")) {
  check_norm(pn_v_spec({}, NormLayout::kThumbnails));
}

TEST_CASE("pn_v: evaluation" * doctest::test_suite("slow")) {
  check_norm(pn_v_spec({.training = false}));
}

TEST_CASE("pn_v: a row mask" * doctest::test_suite("slow")) {
  for (bool training : {true, false}) {
    const auto build = [training](Graph& g, const NormInputs& in, Value mask) {
      return ops::pn_v(g, in.x, {in.gain, in.bias}, {in.state[0], mask}, {.training = training});
    };
    check_row_mask(build, 1);
  }
}

TEST_CASE("pn_v: worked example") {
  check_golden({pn_v(), NormLayout::kColumns, 2}, "PN-V", {"y", "dx", "dgamma"});
}

TEST_CASE("pn_v: the backward is the derivative") {
  for (const Shape& shape : {Shape{7, 3}, Shape{1, 4}, Shape{3, 2, 2, 5}, Shape{35, 33}}) {
    for (int affine = 0; affine < 4; ++affine) {
      for (bool training : {true, false}) {
        OpCase c;
        c.inputs.push_back(random_normal(shape, 1, 0.5, 2));
        for (std::uint32_t i : {2, 3}) c.inputs.push_back(random_normal(Shape{shape[1]}, i, 1));
        c.build = [&](Graph& g, const std::vector<Value>& in) {
          const Value psi2 = g.constant(random_normal(Shape{shape[1]}, 4, 2, 0.1));
          const ops::NormAffine parameters{affine & 1 ? in[1] : Value{},
                                           affine & 2 ? in[2] : Value{}};
          return std::vector{
              ops::pn_v(g, in[0], parameters, {psi2, {}}, {.eps = 1e-2, .training = training})};
        };
        gradcheck(c);
      }
    }
  }
}

// ||dx||^2 = rstd^2 (||g||^2 - (xhat . g)^2 / B) for each feature (Shen et al. 2020, lemma 2).
TEST_CASE("pn_v: the norm of the gradient") {
  const std::int64_t rows = 23, channels = 4;
  NormCase c{NormLayout::kColumns, channels, rows};
  c.states = 1;
  c.eps = 0;
  const NormData data = make_data(c);
  const NormResult r = run_norm(*make_backend("reference"), pn_v(), data);
  for (std::int64_t k = 0; k < channels; ++k) {
    double dx2 = 0, g2 = 0, product = 0;
    const double rstd = r.outputs[PnVOutput::kRstd].at(k);
    for (std::int64_t e = 0; e < rows; ++e) {
      const std::int64_t i = c.at(k, e);
      const double g = data.dy.at(i) * data.gain->at(k);
      dx2 += std::pow(r.gradients[PnVGradient::kDx].at(i), 2);
      g2 += g * g;
      product += g * data.x.at(i) * rstd;
    }
    const double expected = rstd * rstd * (g2 - product * product / double(rows));
    CHECK(dx2 == doctest::Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("pn_v: psi2 <- keep * psi2 + (1 - keep) * psi2_B; evaluation uses psi2") {
  check_three({.keep = 0.75}, 1 / std::sqrt(74. / 3 + 1e-5), 15 + 0.25 * 74 / 3);
  check_three({.eps = 0.5, .keep = 1}, 1 / std::sqrt(74. / 3 + 0.5), 20);
  check_three({.training = false}, 1 / std::sqrt(20 + 1e-5), 0);
}

TEST_CASE("pn_v: a batch without rows gives zeros and leaves the state") {
  for (const std::string& backend : tested_backends()) {
    const Results got = run_three(backend, {}, mask_of({0, 0, 0}));
    for (std::int64_t i : {0, 1, 2}) CHECK(got.at("y0").at(i) == 0);
    CHECK(got.at("y2").at(0) == 20);
  }
}

TEST_CASE("pn_v: a batch without rows has gradients of zero") {
  OpCase c;
  for (const Tensor& t : {f64({3, 1}, {1, 3, 8}), f64({1}, {2}), f64({1}, {0.5})}) {
    c.inputs.push_back(t.clone());
  }
  c.build = [](Graph& g, const std::vector<Value>& in) {
    const Value psi2 = g.constant(f64({1}, {20}).to(g.type(in[0]).dtype));
    const ops::PnVState state{psi2, g.constant(mask_of({0, 0, 0}))};
    return std::vector<Value>{ops::pn_v(g, in[0], {in[1], in[2]}, state, {})};
  };
  for (const std::string& backend : tested_backends()) {
    const Results got = run_case(*make_backend(backend), c, DType::kF32);
    for (std::int64_t i : {0, 1, 2}) CHECK(got.at("d0").at(i) == 0);
    CHECK(got.at("d1").at(0) == 0);
    CHECK(got.at("d2").at(0) == 0);
  }
}

TEST_CASE("pn_v: a step updates the state, evaluation does not") {
  for (bool training : {true, false}) {
    for (const std::string& name : tested_backends()) {
      const auto backend = make_backend(name);
      Graph g;
      const auto ones = [](Tensor& t, const Philox&) { std::ranges::fill(t.as<float>(), 1.0f); };
      const Value psi2 = g.state("psi2", {DType::kF32, {2}}, ones);
      const Value x = g.input("x", {DType::kF32, {2, 2}});
      const Value y = ops::pn_v(g, x, {}, {psi2, {}}, {.keep = 0.5, .training = training});
      if (training) g.mark_update(psi2, y.at(PnVOutput::kNextPsi2));
      g.mark_output("y", y);
      Variables variables(*backend, 1);
      Program program(*backend, variables, g);
      program.feed("x", f64({2, 2}, {1, 3, 1, 3}));
      for (int run = 1; run <= 2; ++run) {
        program.run();
        const double kept = training ? std::pow(0.5, run) : 1;
        CHECK(variables.read("psi2").at(0) == doctest::Approx(1));
        CHECK(variables.read("psi2").at(1) == doctest::Approx(9 - 8 * kept));
      }
    }
  }
}

TEST_CASE("pn_v: refusals") {
  struct Types {
    Shape x{4, 3}, gain{3}, bias{3}, psi2{3}, mask{4};
    DType mask_type = DType::kU8;
  };
  const auto refused = [](const Types& t, const PnVAttrs& attrs, std::string_view message) {
    std::vector<TensorType> inputs;
    for (const Shape& s : {t.x, t.gain, t.bias, t.psi2}) inputs.push_back({DType::kF32, s});
    inputs.push_back({t.mask_type, t.mask});
    check_op_refused(
        inputs,
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::pn_v(g, in[0], {in[1], in[2]}, {in[3], in[4]}, attrs)};
        },
        "pn_v", message);
  };
  refused({.x = {3}}, {}, "x: expected (rows, channels) or (n, channels, h, w), got (3)");
  refused({.x = {0, 3}}, {}, "x: expected at least one element a feature, got (0, 3)");
  refused({.gain = {4}}, {}, "gain: expected (3), got (4)");
  refused({.bias = {4}}, {}, "bias: expected (3), got (4)");
  refused({.psi2 = {1}}, {}, "psi2: expected (3), got (1)");
  refused({.mask = {3}}, {}, "mask: expected (4), got (3)");
  refused({.mask_type = DType::kF32}, {}, "mask: expected u8, got f32");
  refused({.x = {4, 3, 2, 2}}, {}, "mask: expected none for images, got (4)");
  refused({}, {.eps = -1e-5}, "eps: expected >= 0, got -1e-05");
  refused({}, {.keep = 1.5}, "keep: expected in [0, 1], got 1.5");
}

}  // namespace keel::test
