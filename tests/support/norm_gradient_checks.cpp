// Gradients of a norm against central differences, or its definition in elementary ops.
#include <doctest/doctest.h>

#include "backends/backends.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_checks.h"

namespace keel::test {
namespace {

// The norm of a case's data as an op under test: inputs x, then gain and bias as far as present.
OpCase op_case(const NormSpec& spec, const NormCase& c, const NormBuild& build) {
  NormData data = data_of(spec, c);
  const bool has_gain = data.gain.has_value(), has_bias = data.bias.has_value();
  OpCase result;
  result.inputs.push_back(std::move(data.x));
  if (data.gain) result.inputs.push_back(std::move(*data.gain));
  if (data.bias) result.inputs.push_back(std::move(*data.bias));
  result.build = [=](Graph& g, const std::vector<Value>& values) {
    NormInputs inputs{values[0], {}, {}, {}};
    if (has_gain) inputs.gain = values[1];
    if (has_bias) inputs.bias = values.back();
    for (Tensor& state : data_of(spec, c).state) {
      inputs.state.push_back(g.constant(state.to(g.type(values[0]).dtype)));
    }
    return std::vector{build(g, inputs, c.eps)};
  };
  return result;
}

GradientKind gradient_kind(const NormSpec& spec) {
  Graph g;
  const OpCase c = op_case(spec, case_of(spec, {.n = 5}), spec.build);
  std::vector<Value> inputs;
  for (const Tensor& t : c.inputs) {
    inputs.push_back(g.input(fmt::format("x{}", inputs.size()), t.type()));
  }
  return g.node(c.build(g, inputs)[0]).op->gradient;
}

void check_composed(const NormSpec& spec, const NormCase& c) {
  const Results got =
      run_case(*make_backend("reference"), op_case(spec, c, spec.build), DType::kF64);
  const Results expected =
      run_case(*make_backend("reference"), op_case(spec, c, spec.composed), DType::kF64);
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    for (std::int64_t i = 0; i < value.elements(); ++i) {
      CHECK(got.at(name).at(i) == doctest::Approx(value.at(i)).epsilon(1e-9));
    }
  }
}

}  // namespace

void check_gradients(const NormSpec& spec) {
  const GradientKind kind = gradient_kind(spec);
  for (bool gain : {false, true}) {
    for (bool bias : {false, true}) {
      for (const auto& [groups, n] : {std::pair{3, 7}, {2, 12}, {4, 2}, {33, 35}}) {
        const NormCase c = case_of(spec, {.groups = groups,
                                          .n = n,
                                          .mean = 0.5,
                                          .deviation = 2,
                                          .eps = 1e-2,
                                          .gain = gain,
                                          .bias = bias});
        CAPTURE(c.text());
        if (kind == GradientKind::kExact) gradcheck(op_case(spec, c, spec.build));
        if (spec.composed) check_composed(spec, c);
      }
    }
  }
  if (kind == GradientKind::kDetached) REQUIRE(bool(spec.composed));
}

}  // namespace keel::test
