// The first values of norms' gains and biases.
#include <doctest/doctest.h>

#include <cmath>

#include "frontend/nn/norm.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

// Whether the facts of a norm name that parameter.
bool has_parameter(const NormFacts& facts, std::string_view name) {
  return facts.parameters.find(name) != std::string::npos;
}

// The options of `facts` with a gain and a bias, where it may have them, and these first values.
std::string with_first_values(const NormFacts& facts, double gain, double bias) {
  const Norm usual = Norm::parse(facts.name);
  std::string options = fmt::format("gain_init={}", gain);
  if (!usual.option("gain").empty()) options += ",gain=true";
  if (has_parameter(facts, "bias")) options += fmt::format(",bias=true,bias_init={}", bias);
  return facts.any_width(options);
}

TEST_CASE("norm options: every gain and every bias begins as it is told") {
  int gains = 0, biases = 0;
  for (const NormFacts& facts : norm_facts()) {
    CAPTURE(facts.name);
    const Norm usual = Norm::parse(facts.name);
    const bool has_gain = has_parameter(facts, "gain"), has_bias = has_parameter(facts, "bias");
    const bool is_simple = facts.name == "layernorm_simple";  // its name stands for the usual ones
    CHECK(usual.option("gain_init").empty() == !(has_gain || is_simple));
    CHECK(usual.option("bias_init").empty() == !(has_bias || is_simple));
    if (!has_gain) continue;
    const Norm norm = Norm::parse(with_first_values(facts, 0.25, -0.5));
    LayerRun run([&](Net& net, Value x) { return norm.alone(net, "n", x); }, {2, 3, 12});
    const Tensor gain = run.read("n/gain");
    // That of scalenorm is as large as the root of the width.
    const double unit = facts.name == "scalenorm" ? std::sqrt(12) : 1;
    for (std::int64_t e = 0; e < gain.elements(); ++e) {
      CHECK(gain.at(e) == doctest::Approx(0.25 * unit).epsilon(1e-7));
    }
    ++gains;
    if (!has_bias) continue;
    const Tensor bias = run.read("n/bias");
    for (std::int64_t e = 0; e < bias.elements(); ++e) CHECK(bias.at(e) == -0.5);
    ++biases;
  }
  CHECK(gains == 18);
  CHECK(biases == 15);
}

TEST_CASE("norm options: a gain with an offset begins so that both are 1") {
  const auto first = [](const std::string& options) {
    const Norm norm = Norm::parse("rmsnorm{" + options + "}");
    LayerRun run([&](Net& net, Value x) { return norm(net, "n", x); }, {2, 3});
    return run.read("n/gain").at(0);
  };
  CHECK(first("eps=1") == 1);
  CHECK(first("offset=1") == 0);
  CHECK(first("offset=0.25") == 0.75);
  CHECK(first("gain_init=0.5,offset=1") == 0.5);
}

void check_first_value_refused(const std::string& text, const std::string& beginning,
                               const std::string& part) {
  CAPTURE(text);
  test::check_refused([&] { Norm::parse(text); }, beginning, part);
}

TEST_CASE("norm options: a first value is that of a gain or a bias that is there") {
  const char* no_gain = "expected gain=true beside it, got 0.5";
  for (const NormFacts& facts : norm_facts()) {
    const Norm usual = Norm::parse(facts.name);
    if (usual.option("gain").empty() || facts.name == "layernorm_simple") continue;
    CAPTURE(facts.name);
    const std::string refusal = fmt::format("norm {}: option ", facts.name);
    check_first_value_refused(facts.name + "{gain=false,gain_init=0.5}",
                              refusal + "gain_init: ", no_gain);
    check_first_value_refused(facts.name + "{bias_init=0.5,bias=false}",
                              refusal + "bias_init: ", "expected bias=true beside it, got 0.5");
    Norm::parse(facts.name + "{gain=false,bias=false}");
  }
  check_first_value_refused("instancenorm{gain_init=0.5}",
                            "norm instancenorm: option gain_init: ", no_gain);
  check_first_value_refused("rmsnorm{bias_init=1}", "norm rmsnorm: option bias_init: ",
                            "expected bias=true beside it, got 1");
  check_first_value_refused("rmsnorm{offset=1,gain=false}",
                            "norm rmsnorm: option offset: ", "expected gain=true beside it, got 1");
  check_first_value_refused("rmsnorm{cast_first=true,gain=false}",
                            "norm rmsnorm: option cast_first: ", "expected gain=true beside it");
  check_first_value_refused("rmsnorm{offset=one}", "norm rmsnorm: option offset: ", "got 'one'");
}

}  // namespace
}  // namespace keel::nn
