#include "tests/support/power_norm_stepper.h"

#include <algorithm>

#include "backends/backends.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::test {
namespace {

Initializer fill(float value) {
  return [value](Tensor& t, const Philox&) { std::ranges::fill(t.as<float>(), value); };
}

}  // namespace

PowerNormStepper::PowerNormStepper(const std::string& backend, const Shape& x, PowerNormAttrs attrs,
                                   const Options& options)
    : backend_(make_backend(backend, {.threads = options.threads})), variables_(*backend_, 1) {
  Graph& g = graph_;
  const TensorType channels{DType::kF32, {x[1]}};
  const Value gain = g.parameter("gain", channels, fill(1));
  const Value bias = g.parameter("bias", channels, fill(0));
  const Value psi2 = g.state("psi2", channels, fill(1)), nu = g.state("nu", channels, fill(0));
  const Value step = g.state("step", {DType::kI32, {}}, [](Tensor&, const Philox&) {});
  const Value in = g.input("x", {DType::kF32, x}), dy = g.input("dy", {DType::kF32, x});
  const Value kept = options.mask ? g.constant(options.mask->clone()) : Value{};
  Value z = in;
  const bool is_scaled = attrs.is_scaled();
  if (options.is_apart) {
    z = ops::group_scaling(g, in, {.groups = attrs.groups, .eps = attrs.scaling_eps});
    attrs.groups = 0;
  }
  const Value y = ops::power_norm(g, z, {gain, bias}, {psi2, nu, step, kept}, attrs);
  const Value wrt[] = {in, gain, bias};
  const auto [d, changed] = differentiate(g, ops::sum(g, ops::mul(g, y, dy)), wrt);
  for (const Update& update : changed) g.mark_update(update.leaf, update.next);
  using Out = PowerNormOutput;
  std::vector<NamedValue> outputs{
      {"y", y}, {"rstd", y.at(Out::kRstd)}, {"dx", d[0]}, {"dgain", d[1]}, {"dbias", d[2]}};
  if (attrs.training) {
    for (const NamedValue& more : {NamedValue{"Gamma", y.at(Out::kGamma)},
                                   NamedValue{"contraction", y.at(Out::kContraction)},
                                   NamedValue{"nu_max", y.at(Out::kNuMax)}}) {
      outputs.push_back(more);
    }
    g.mark_update(psi2, y.at(Out::kNextPsi2));
    g.mark_update(step, y.at(Out::kNextStep));
  }
  if (is_scaled) {
    outputs.push_back(
        {"row_rstd", options.is_apart ? z.at(GroupScalingOutput::kRstd) : y.at(Out::kRowRstd)});
  }
  for (const NamedValue& output : outputs) g.mark_output(output.name, output.value);
  program_ = std::make_unique<Program>(*backend_, variables_, g);
}

Results PowerNormStepper::step(const Tensor& x, const Tensor& dy) {
  program_->feed("x", x);
  program_->feed("dy", dy);
  program_->run();
  Results results;
  for (const NamedValue& output : graph_.outputs()) {
    results[output.name] = program_->fetch(output.name, true);
  }
  for (const char* name : {"psi2", "nu", "step"}) results[name] = variables_.read(name, true);
  return results;
}

double largest_error(const Tensor& got, const Tensor& expected, double scale) {
  REQUIRE(got.elements() == expected.elements());
  double error = 0;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double difference = std::abs(got.at(i) - expected.at(i));
    error = std::max(error, difference / std::max(std::abs(expected.at(i)), scale));
  }
  return error;
}

}  // namespace keel::test
