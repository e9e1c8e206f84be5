// keel norm
#include "frontend/nn/norm.h"

#include <cmath>

#include "backends/backends.h"
#include "tests/program/norm_case.h"

namespace keel::cli {
namespace {

std::vector<std::string> names(const Arrays& arrays) {
  std::vector<std::string> result;
  for (const auto& [name, array] : arrays) result.push_back(name);
  return result;
}

const Names kPrecise{"layernorm", "--backend", "reference", "--dtype", "f64"};

// y = gain (x - m) / sqrt(v + eps) + bias over rows of n, and its gradients.
struct LayerNormOracle {
  std::vector<double> y, dx, dgain, dbias;

  LayerNormOracle(const Arrays& a, std::int64_t n, double eps)
      : dgain(std::size_t(n), 0), dbias(std::size_t(n), 0) {
    const Tensor &x = a.at("x"), &dy = a.at("dy"), &gain = a.at("gain"), &bias = a.at("bias");
    for (std::int64_t row = 0; row < x.elements(); row += n) {
      double m = 0, v = 0, g = 0, gh = 0;
      for (std::int64_t i = 0; i < n; ++i) m += x.at(row + i) / double(n);
      for (std::int64_t i = 0; i < n; ++i) v += std::pow(x.at(row + i) - m, 2) / double(n);
      const double r = 1 / std::sqrt(v + eps);
      const auto h = [&](std::int64_t i) { return (x.at(row + i) - m) * r; };
      const auto dh = [&](std::int64_t i) { return dy.at(row + i) * gain.at(i); };
      for (std::int64_t i = 0; i < n; ++i) {
        g += dh(i) / double(n);
        gh += dh(i) * h(i) / double(n);
        dgain[std::size_t(i)] += dy.at(row + i) * h(i);
        dbias[std::size_t(i)] += dy.at(row + i);
      }
      for (std::int64_t i = 0; i < n; ++i) {
        y.push_back(gain.at(i) * h(i) + bias.at(i));
        dx.push_back(r * (dh(i) - g - h(i) * gh));
      }
    }
  }
};

TEST_CASE_FIXTURE(Case, "norm: forward and backward of given arrays") {
  const Arrays given = arrays_of("x", random({2, 3, 5}, 1), "dy", random({2, 3, 5}, 2), "gain",
                                 random({5}, 3), "bias", random({5}, 4));
  const Arrays result = results(given, kPrecise);
  CHECK(names(result) == Names{"dbias", "dgain", "dx", "y"});
  const LayerNormOracle expected(given, 5, 1e-5);
  check_close(result.at("y"), expected.y, 1e-12);
  check_close(result.at("dx"), expected.dx, 1e-12);
  check_close(result.at("dgain"), expected.dgain, 1e-12);
  check_close(result.at("dbias"), expected.dbias, 1e-12);
  CHECK(result.at("y").type() == TensorType{DType::kF64, {2, 3, 5}});
  const Arrays single = results(given, {"layernorm"});
  CHECK(single.at("dx").dtype() == DType::kF32);
  check_close(single.at("dx"), expected.dx, 1e-5);
}

TEST_CASE_FIXTURE(Case, "norm: options come after those in braces") {
  Arrays given = arrays_of("x", random({2, 5}, 1), "dy", random({2, 5}, 2));
  const Arrays expected = results(given, {"layernorm{eps=0.5,bias=false}"});
  CHECK(names(expected) == Names{"dgain", "dx", "y"});
  for (const char* text : {"layernorm", "layernorm{}", "layernorm{eps=3}"}) {
    const Arrays got = results(given, {text, "--option", "bias=false", "--option", "eps=0.5"});
    CHECK(names(got) == names(expected));
    CHECK(values(got.at("y")) == values(expected.at("y")));
  }
  given.erase("dy");
  CHECK(names(results(given, {"layernorm"})) == Names{"y"});
}

TEST_CASE_FIXTURE(Case, "norm: steps carry the state on, whatever their batch") {
  Arrays given = arrays_of("s0.x", random({4, 3}, 1), "s1.x", random({6, 3}, 2), "s1.dy",
                           random({6, 3}, 3), "state.running_mean", random({3}, 4));
  std::vector<double> mean = values(given.at("state.running_mean"));
  const Arrays result =
      results(given, {"batchnorm{keep=0.75}", "--backend", "reference", "--dtype", "f64"});
  for (const std::string step : {"s0.", "s1."}) {
    const Tensor& x = given.at(step + "x");
    for (std::size_t c = 0; c < 3; ++c) {
      double batch = 0;
      for (std::int64_t row = 0; row < x.shape()[0]; ++row) {
        batch += x.at(row * 3 + std::int64_t(c)) / double(x.shape()[0]);
      }
      mean[c] = 0.75 * mean[c] + 0.25 * batch;
    }
    check_close(result.at(step + "state.running_mean"), mean, 1e-12);
  }
  check_close(result.at("state.running_mean"), mean, 1e-12);
  CHECK(result.contains("s1.dx"));
  CHECK_FALSE(result.contains("s0.dx"));
}

TEST_CASE_FIXTURE(Case, "norm: evaluation uses the state and leaves it") {
  const Arrays given = arrays_of("x", random({4, 3}, 1), "dy", random({4, 3}, 2),
                                 "state.running_mean", Tensor::of<double>({3}, {1, 2, 3}),
                                 "state.running_var", Tensor::of<double>({3}, {4, 1, 0.25}));
  const Arrays result =
      results(given, {"batchnorm{eps=0}", "--mode", "eval", "--backend", "reference"});
  const double root[] = {2, 1, 0.5};
  std::vector<double> y, dx;
  for (std::int64_t i = 0; i < 12; ++i) {
    y.push_back((given.at("x").at(i) - double(i % 3 + 1)) / root[i % 3]);
    dx.push_back(given.at("dy").at(i) / root[i % 3]);
  }
  check_close(result.at("y"), y, 1e-6);
  check_close(result.at("dx"), dx, 1e-6);
  CHECK(values(result.at("state.running_mean")) == values(given.at("state.running_mean")));
  CHECK(values(result.at("state.running_var")) == values(given.at("state.running_var")));
}

TEST_CASE_FIXTURE(Case, "norm: f64 holds what f32 does not, and f32 an infinity that was given") {
  const Arrays huge = arrays_of("x", Tensor::of<double>({1, 2}, {1, -1e200}));
  CHECK(run(huge, {"none", "--dtype", "f64", "--backend", "reference"}).code == 0);
  const Arrays infinite = arrays_of("x", Tensor::of<double>({1, 2}, {1, INFINITY}));
  CHECK(run(infinite, {"none"}).code == 0);
}

TEST_CASE_FIXTURE(Case, "norm: every variant takes arrays, and says what it wrote") {
  const Arrays given = arrays_of("x", random({4, 6, 2, 2}, 1), "dy", random({4, 6, 2, 2}, 2));
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    CAPTURE(facts.name);
    const Json said = json_of(run(given, {facts.any_width(), "--json"}));
    CHECK(said.at("norm") == facts.name);
    CHECK(said.at("arrays").at("y") == "f32(4, 6, 2, 2)");
    CHECK(said.at("arrays").at("dx") == "f32(4, 6, 2, 2)");
    for (const auto& [name, array] : io::read_npz(folder / "result.npz")) {
      CHECK(said.at("arrays").at(name) == array.type().text());
    }
  }
  CHECK(holds(run(given, {"none"}).out, "dx     f32(4, 6, 2, 2)"));
}

TEST_CASE_FIXTURE(Case, "norm: arrays and options that do not fit") {
  const Tensor x = random({2, 5}, 1), short_x = random({1, 5}, 1), wide = random({2, 6}, 1),
               image = random({3, 2, 1, 1}, 1);
  const Tensor mask = Tensor::of<std::uint8_t>({3}, {1, 0, 1}),
               whole = Tensor::of<std::int32_t>({2}, {1, 0}),
               huge = Tensor::of<double>({1, 2}, {1, -1e200}),
               below = Tensor::of<std::int32_t>({}, {-2}), half = Tensor::of<double>({}, {0.5}),
               negative = Tensor::of<double>({5}, {1, 1, 1, 1, -1});
  const struct {
    Names arguments;
    std::vector<std::pair<std::string, const Tensor*>> arrays;
    int code;
    const char* part;
  } rows[] = {
      {{"layernorm"}, {}, 3, "expected an array x or arrays s0.x, s1.x, ..., got neither"},
      {{"layernorm"}, {{"x", &x}, {"s0.x", &x}}, 3, "got both"},
      {{"layernorm"}, {{"x", &x}, {"dy", &short_x}}, 3, "dy: expected (2, 5), got (1, 5)"},
      {{"layernorm"}, {{"x", &x}, {"gain", &x}}, 3, "gain: expected (5), got (2, 5)"},
      {{"layernorm"},
       {{"s0.x", &x}, {"s2.x", &x}},
       3,
       "case.npz: array s1.x: expected, as there are later"},
      {{"layernorm"}, {{"s1.x", &x}}, 3, "case.npz: array s0.x: expected, as there are later"},
      {{"groupnorm{groups=4}"}, {{"x", &x}}, 3, "case.npz: x: [group_norm] groups: expected a"},
      {{"instancenorm"}, {{"x", &x}}, 3, "case.npz: x: [instancenorm] x: expected (n, steps,"},
      {{"layernorm{eps=-1}"}, {{"x", &x}}, 2, "eps"},
      {{"layernorm"}, {{"x", &huge}}, 3, "case.npz: array x: expected numbers in the range of --d"},
      {{"batchnorm"}, {{"x", &x}, {"mask", &whole}}, 3, "u1 or bool, got i4 or i8(2)"},
      {{"layernorm"},
       {{"s0.x", &x}, {"s1.x", &x}, {"s2.x", &wide}},
       3,
       "case.npz: s2.x (2, 6): expected gain (5) as for s0.x, got (6)"},
      {{"batchnorm{gain=false,bias=false}"},
       {{"s0.x", &x}, {"s1.x", &image}},
       3,
       "case.npz: s1.x (3, 2, 1, 1): expected state.running_mean (5) as for s0.x, got (2)"},
      {{"groupnorm{groups=5}"},
       {{"s0.x", &x}, {"s1.x", &wide}},
       3,
       "case.npz: s1.x: [group_norm] groups: expected a divisor of "},
      {{"batchnorm"}, {{"x", &x}, {"state.gain", &x}}, 3, "expected only x, dy, "},
      {{"mabn"},
       {{"x", &x}, {"state.step", &below}},
       3,
       "case.npz: state.step: norm/step: expected elements from 0 to 2147483646, got -2"},
      {{"powernorm"},
       {{"x", &x}, {"state.step", &half}},
       3,
       "state.step: norm/step: expected whole numbers, got f64()"},
      {{"batchnorm"},
       {{"x", &x}, {"state.running_var", &negative}},
       3,
       "state.running_var: norm/running_var: expected elements from 0 to inf, got -1"},
      {{"layernorm"}, {{"x", &x}, {"mask", &mask}}, 3, "mask: expected none for layernorm, got u8"},
      {{"batchnorm"}, {{"x", &x}, {"mask", &x}}, 3, "mask: expected u1 or bool, got f64(2, 5)"},
      {{"batchnorm"}, {{"x", &x}, {"mask", &mask}}, 3, "mask: expected (2), got (3)"},
      {{"batchnorm"}, {{"x", &image}, {"mask", &mask}}, 3, "mask: expected none for images"},
      {{"batchnorm"}, {{"s0.x", &x}, {"s1.mask", &mask}}, 3, "array s1.mask: expected only x, dy"},
      {{"batchnorm{padding=zero}"}, {{"x", &x}}, 2, "expected exact or pn_code, got 'zero'"},
      {{"lernorm"}, {{"x", &x}}, 2, "nearest: 'layernorm'"},
      {{"layernorm", "--option", "esp=1"}, {{"x", &x}}, 2, "nearest: 'eps'"},
      {{"layernorm", "--option", "eps"}, {{"x", &x}}, 2, "expected key=value, got 'eps'"},
      {{"layernorm", "--option", ""}, {{"x", &x}}, 2, "expected a value, got ''"},
      {{"layernorm", "--option", "eps=1,gain=false"}, {{"x", &x}}, 2, "got 'eps=1,gain=false'"},
      {{"layernorm", "--option", "eps=1", "--option", "eps=2"}, {{"x", &x}}, 2, "got '1' and '2'"},
      {{"layernorm{eps=1,eps=2}"}, {{"x", &x}}, 2, "eps: expected one value, got '1' and '2'"},
      {{"layernorm{eps=1,}", "--option", "gain=false"}, {{"x", &x}}, 2, "got ''"},
      {{"layernorm{", "--option", "eps=1"}, {{"x", &x}}, 2, "expected a closing brace"},
      {{"layernorm{eps=1", "--option", "gain=false"}, {{"x", &x}}, 2, "expected a closing brace"},
      {{"layernorm}", "--option", "eps=1"}, {{"x", &x}}, 2, "nearest: 'layernorm'"},
      {{"layernorm", "--dtype", "f16"}, {{"x", &x}}, 2, "--dtype"},
      {{"layernorm", "--mode", "test"}, {{"x", &x}}, 2, "--mode"},
      {{"layernorm", "--backend", "onednm"}, {{"x", &x}}, 2, "nearest: 'onednn'"},
  };
  for (const auto& row : rows) {
    Arrays given;
    for (const auto& [name, array] : row.arrays) given[name] = array->clone();
    check_refusal(run(given, row.arguments), row.code, row.part);
    CHECK_FALSE(std::filesystem::exists(folder / "result.npz"));
  }
}

TEST_CASE_FIXTURE(Case, "norm: files that cannot be, and a type that the backend refuses") {
  check_refusal(run_keel({"norm", "none", "--in", folder / "no.npz", "--out", "x"}), 4, "no.npz");
  test::write_bytes(folder / "text", "text");
  check_refusal(run_keel({"norm", "none", "--in", folder / "text", "--out", "x"}), 3, "text");
  Arrays given = arrays_of("x", random({2, 5}, 1));
  test::write_bytes(folder / "case.npz", io::npz_bytes(given));
  check_refusal(run_keel({"norm", "none", "--in", folder / "case.npz", "--out", "/proc/keel/x"}), 4,
                "/proc/keel");
  if (default_backend() != "onednn") return;
  check_refusal(run(given, {"layernorm", "--backend", "onednn", "--dtype", "f64"}), 7,
                "backend onednn refuses layer_norm (node norm/layer_norm): ");
}

}  // namespace
}  // namespace keel::cli
