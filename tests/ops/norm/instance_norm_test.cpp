// Instance norm of sequences: the promises of every norm, padding, refusals.
#include "src/ops/norm/instance_norm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/backends.h"
#include "src/ops/layout.h"
#include "src/ops/norm/batch_norm.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_template.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

Value build(Graph& g, const NormInputs& in, double eps) {
  return ops::instance_norm(g, in.x, {in.gain, in.bias}, {}, {.eps = eps});
}

// A batch norm of every sample: slices of x, joined again. The mask (n, steps) is of constant rows.
Value per_sample(Graph& g, const std::vector<Value>& in, const Tensor* mask) {
  const SequenceSizes s = sequence_sizes(g.shape(in[0]));
  std::vector<Value> y;
  for (std::int64_t i = 0; i < s.samples; ++i) {
    const Value x = ops::reshape(g, ops::slice_axis(g, in[0], 0, i, 1), {s.steps, s.channels});
    Value kept;
    if (mask) {
      Tensor rows(DType::kU8, Shape{s.steps});
      std::copy_n(&mask->as<std::uint8_t>()[std::size_t(i * s.steps)], s.steps,
                  rows.as<std::uint8_t>().begin());
      kept = g.constant(std::move(rows));
    }
    const Value state = g.constant(random_normal({s.channels}, 1).to(g.type(x).dtype));
    const Value of_x = ops::batch_norm(g, x, {in[1], in[2]}, {state, state, kept}, {});
    y.push_back(ops::reshape(g, of_x, {1, s.steps, s.channels}));
  }
  return ops::concat(g, y, 0);
}

struct MaskedSamples {
  Shape shape;
  double padding = 0;

  Tensor mask() const {
    Tensor m(DType::kU8, Shape{shape[0], shape[1]});
    for (std::int64_t row = 0; row < m.elements(); ++row) {
      const std::int64_t sample = row / shape[1], step = row % shape[1];
      // Padding after the end, gaps, and one sample of nothing else.
      m.as<std::uint8_t>()[std::size_t(row)] =
          sample % 4 != 3 && step % 7 != 5 && step < shape[1] - sample % 3 * shape[1] / 4;
    }
    return m;
  }
  OpCase op_case(bool oracle = false) const {
    OpCase c;
    c.inputs.push_back(random_normal(shape, 1, 3, 2));
    for (std::uint32_t i : {2, 3}) c.inputs.push_back(random_normal({shape[2]}, i, 1));
    const Tensor kept = mask();
    for (std::int64_t e = 0; padding != 0 && e < shape.elements(); ++e) {
      if (kept.at(e / shape[2]) == 0) c.inputs[0].as<double>()[std::size_t(e)] = padding;
    }
    c.build = [this, oracle](Graph& g, const std::vector<Value>& in) {
      const Tensor rows = mask();
      if (oracle) return std::vector{per_sample(g, in, &rows)};
      return std::vector{
          ops::instance_norm(g, in[0], {in[1], in[2]}, g.constant(rows.clone()), {})};
    };
    return c;
  }
};

}  // namespace

TEST_CASE("instance_norm: what every norm promises" * doctest::test_suite("slow")) {
  check_norm({build, NormLayout::kSequences});
}

TEST_CASE("instance_norm: a sample is normalized like a batch, padding or not" *
          doctest::test_suite("slow")) {
  for (const Shape& shape : {Shape{5, 9, 3}, Shape{37, 50, 70}, Shape{4, 2500, 33}}) {
    const MaskedSamples masked{shape};
    const Results expected = run_reference(masked.op_case(true));
    for (const std::string& backend : tested_backends()) {
      CAPTURE(backend);
      CAPTURE(shape.text());
      const bool exact = backend == "reference";
      const Results got =
          run_case(*make_backend(backend), masked.op_case(), exact ? DType::kF64 : DType::kF32);
      for (const auto& [name, value] : expected) {
        CAPTURE(name);
        check_close(got.at(name), value, exact ? 1e-12 : 2e-6);
      }
    }
  }
}

TEST_CASE("instance_norm: the backward under a mask is the derivative") {
  gradcheck(MaskedSamples{{5, 9, 3}}.op_case());
}

TEST_CASE("instance_norm: what padding holds changes no bit, nor does the thread count" *
          doctest::test_suite("slow")) {
  for (const std::string& backend : tested_backends()) {
    const MaskedSamples zeros{{37, 50, 70}}, other{{37, 50, 70}, NAN};
    const Results expected = run_case(*make_backend(backend, {1}), zeros.op_case(), DType::kF32);
    for (int threads : {1, 2, 3, 7}) {
      const Results got = run_case(*make_backend(backend, {threads}), other.op_case(), DType::kF32);
      for (const auto& [name, value] : expected) {
        CAPTURE(name);
        CHECK(std::memcmp(got.at(name).data(), value.data(), std::size_t(value.bytes())) == 0);
      }
      if (backend == "reference") break;
    }
  }
}

TEST_CASE("instance_norm: refusals") {
  struct Types {
    TensorType x{DType::kF32, {2, 4, 3}}, gain{DType::kF32, {3}}, bias = gain;
    TensorType mask{DType::kU8, {2, 4}};
  };
  const auto refused = [](const Types& t, const InstanceNormAttrs& attrs,
                          std::string_view message) {
    check_op_refused(
        {t.x, t.gain, t.bias, t.mask},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::instance_norm(g, in[0], {in[1], in[2]}, in[3], attrs)};
        },
        "instance_norm", message);
  };
  const auto f32 = [](const Shape& shape) { return TensorType{DType::kF32, shape}; };
  refused({.x = f32({4, 3})}, {}, "x: expected (n, steps, channels), got (4, 3)");
  refused({.x = f32({2, 0, 3})}, {}, "x: expected at least one sample and step, got (2, 0, 3)");
  refused({.x = f32({0, 4, 3})}, {}, "x: expected at least one sample and step, got (0, 4, 3)");
  refused({.x = {DType::kI32, {2, 4, 3}}}, {}, "x: expected a floating type, got i32");
  refused({.gain = f32({4})}, {}, "gain: expected (3), got (4)");
  refused({.bias = f32({4})}, {}, "bias: expected (3), got (4)");
  refused({.mask = {DType::kU8, {8}}}, {}, "mask: expected (2, 4), got (8)");
  refused({.mask = {DType::kI32, {2, 4}}}, {}, "mask: expected u8, got i32");
  refused({}, {.eps = -1}, "eps: expected >= 0, got -1");
}

}  // namespace keel::test
