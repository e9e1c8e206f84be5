#include "tests/support/norm_template.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "backends/backends.h"
#include "src/autodiff/gradient.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_errors.h"
#include "tests/support/norm_golden.h"

namespace keel::test {
namespace {

bool has_fast_backend() { return default_backend() != "reference"; }

NormResult run_fast(const NormSpec& spec, const NormData& data, int threads = 2,
                    bool in_place = false) {
  return run_norm(*make_backend(default_backend(), {threads}), spec.build, data, in_place);
}

NormResult run_reference(const NormSpec& spec, const NormData& data, bool in_place = false) {
  return run_norm(*make_backend("reference"), spec.build, data, in_place);
}

NormCase of(const NormSpec& spec, NormCase c) {
  c.layout = spec.layout;
  c.states = spec.states;
  return c;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), std::size_t(a.bytes())) == 0;
}

bool same_bits(const NormResult& a, const NormResult& b) {
  const auto same = [](const std::vector<Tensor>& s, const std::vector<Tensor>& t) {
    return std::ranges::equal(s, t,
                              [](const Tensor& x, const Tensor& y) { return same_bits(x, y); });
  };
  return same(a.outputs, b.outputs) && same(a.gradients, b.gradients);
}

// The norm of c's data as an op under test: inputs x, then gain and bias as far as present.
OpCase op_case(const NormCase& c, const NormBuild& build) {
  NormData data = make_data(c);
  OpCase result;
  result.inputs.push_back(std::move(data.x));
  if (data.gain) result.inputs.push_back(std::move(*data.gain));
  if (data.bias) result.inputs.push_back(std::move(*data.bias));
  result.build = [c, build](Graph& g, const std::vector<Value>& values) {
    NormInputs inputs{values[0], {}, {}, {}};
    if (c.gain) inputs.gain = values[1];
    if (c.bias) inputs.bias = values.back();
    for (Tensor& state : make_data(c).state) {
      inputs.state.push_back(g.constant(state.to(g.type(values[0]).dtype)));
    }
    return std::vector{build(g, inputs, c.eps)};
  };
  return result;
}

GradientKind gradient_kind(const NormSpec& spec) {
  Graph g;
  const OpCase c = op_case(of(spec, {.n = 5}), spec.build);
  std::vector<Value> inputs;
  for (const Tensor& t : c.inputs) {
    inputs.push_back(g.input(fmt::format("x{}", inputs.size()), t.type()));
  }
  return g.node(c.build(g, inputs)[0]).op->gradient;
}

void check_composed(const NormSpec& spec, const NormCase& c) {
  const Results got = run_case(*make_backend("reference"), op_case(c, spec.build), DType::kF64);
  const Results expected =
      run_case(*make_backend("reference"), op_case(c, spec.composed), DType::kF64);
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    for (std::int64_t i = 0; i < value.elements(); ++i) {
      CHECK(got.at(name).at(i) == doctest::Approx(value.at(i)).epsilon(1e-9));
    }
  }
}

void check_gradients(const NormSpec& spec) {
  const GradientKind kind = gradient_kind(spec);
  for (bool gain : {false, true}) {
    for (bool bias : {false, true}) {
      for (const auto& [groups, n] : {std::pair{3, 7}, {2, 12}, {4, 2}, {33, 35}}) {
        const NormCase c = of(spec, {.groups = groups,
                                     .n = n,
                                     .mean = 0.5,
                                     .deviation = 2,
                                     .eps = 1e-2,
                                     .gain = gain,
                                     .bias = bias});
        CAPTURE(c.text());
        if (kind == GradientKind::kExact) gradcheck(op_case(c, spec.build));
        if (spec.composed) check_composed(spec, c);
      }
    }
  }
  if (kind == GradientKind::kDetached) REQUIRE(bool(spec.composed));
}

struct Outcome {
  const NormData& data;
  const NormResult &got, &expected;
};

void check_errors(const NormSpec& spec, const NormCase& c, const Outcome& outcome) {
  CAPTURE(c.text());
  const NormErrors errors = norm_errors(c, outcome.data, outcome.got, outcome.expected);
  CHECK(errors.forward <= kForwardBound + (spec.moved ? c.deviation : 0));
  CHECK(errors.dx <= kBackwardBound);
  CHECK(errors.parameters <= kBackwardBound);
}

void check_against_reference(const NormSpec& spec) {
  std::vector<NormCase> cases = generated_cases(spec.layout);
  for (const NormCase& c : large_cases(spec.layout)) cases.push_back(c);
  const auto tested = make_backend(default_backend(), {2});
  const auto reference = make_backend("reference");
  for (NormCase c : cases) {
    c = of(spec, c);
    if (c.n < spec.least_n || (c.groups == 0 && spec.layout != NormLayout::kRows)) continue;
    const NormData data = make_data(c);
    const NormResult got = run_norm(*tested, spec.build, data);
    check_errors(spec, c, {data, got, run_norm(*reference, spec.build, data)});
    // A megabyte and a few rows of parameters, never the size of x.
    CAPTURE(c.text());
    CHECK(got.workspace <= (1 << 20) + 64 * c.parameter_shape().elements());
  }
}

// dy of one sign makes the sums of dgain and dbias grow over all rows: an error of each addition
// would show.
void check_long_sums(const NormSpec& spec) {
  const bool rows = spec.layout == NormLayout::kRows;
  const NormCase c = of(spec, {.groups = rows ? 65536 : 3, .n = rows ? 3 : 65536, .mean = 2});
  NormData data = make_data(c);
  std::ranges::fill(data.dy.as<double>(), double(0.1f));
  check_errors(spec, c, {data, run_fast(spec, data), run_reference(spec, data)});
}

// How many elements satisfy a predicate (group, element of it).
template <class Predicate>
int count(const NormCase& c, const Predicate& predicate) {
  int n = 0;
  for (std::int64_t k = 0; k < c.groups; ++k) {
    for (std::int64_t e = 0; e < c.n; ++e) n += predicate(k, e);
  }
  return n;
}

void check_constant_groups(const NormSpec& spec) {
  for (std::int64_t n : {1, 2, 3, 17, 33, 1000, 4099}) {
    if (n < spec.least_n) continue;
    for (double eps : {1e-1, 1e-12}) {
      const NormCase c = of(spec, {.groups = 5, .n = n, .eps = eps});
      CAPTURE(c.text());
      NormData data = make_data(c);
      constexpr double kValues[] = {1e6, 0.1, -123.456, 3e-20, 7e30};
      for (std::int64_t k = 0; k < c.groups; ++k)
        set_group(data, c, k, [&](auto) { return kValues[k]; });
      for (double& gain : data.gain->as<double>()) gain = 123;
      std::vector<NormResult> results;
      results.push_back(run_reference(spec, data));
      if (has_fast_backend()) results.push_back(run_fast(spec, data));
      for (const NormResult& result : results) {
        CHECK(count(c, [&](std::int64_t k, std::int64_t e) {
                return result.outputs[0].at(c.at(k, e)) != data.bias->at(c.parameter(k, e));
              }) == 0);
      }
    }
  }
}

enum Special : std::int64_t {
  kNormal,
  kNan,
  kInfinite,
  kHuge,
  kLargest,
  kTiny,
  kConstant,
  kAway,
  kSpecials
};

void set_specials(NormData& data, const NormCase& c, bool with_non_finite) {
  const Tensor normal = random_normal(Shape{kSpecials, c.n}, 8);
  const auto z = [&](std::int64_t k, std::int64_t e) { return normal.at(k * c.n + e); };
  for (std::int64_t k = 0; k < kSpecials; ++k)
    set_group(data, c, k, [&](auto e) { return z(k, e); });
  const double largest = std::numeric_limits<float>::max() / 4;
  set_group(data, c, kHuge, [&](auto e) { return 1e30 * z(kHuge, e); });
  set_group(data, c, kLargest, [&](auto e) { return e % 2 ? largest : -largest; });
  set_group(data, c, kTiny, [&](auto e) { return 1e-30 * z(kTiny, e); });
  set_group(data, c, kConstant, [](auto) { return 5.3; });
  set_group(data, c, kAway, [&](auto e) { return 1e6 + z(kAway, e); });
  if (!with_non_finite) return;
  data.x.as<double>()[std::size_t(c.at(kNan, c.n / 2))] = NAN;
  data.x.as<double>()[std::size_t(c.at(kInfinite, c.n - 1))] = INFINITY;
}

void check_specials(const NormSpec& spec) {
  for (std::int64_t n : {2, 37, 1025}) {
    for (double eps : {1e-1, 1e-5, 1e-12}) {
      const NormCase c = of(spec, {.groups = kSpecials, .n = n, .eps = eps});
      CAPTURE(c.text());
      NormData data = make_data(c);
      set_specials(data, c, false);
      const NormResult finite = run_fast(spec, data);
      check_errors(spec, c, {data, finite, run_reference(spec, data)});
      set_specials(data, c, true);
      const NormResult got = run_fast(spec, data);
      const auto has_changed = [&](const Tensor& before, const Tensor& now, std::int64_t i) {
        return before.at(i) != now.at(i);
      };
      CHECK(count(c, [&](std::int64_t k, std::int64_t e) {
              const std::int64_t i = c.at(k, e);
              const bool spoilt = k == kNan || k == kInfinite;
              return spoilt
                         ? !std::isnan(got.outputs[0].at(i)) || !std::isnan(got.gradients[0].at(i))
                         : has_changed(finite.outputs[0], got.outputs[0], i) ||
                               has_changed(finite.gradients[0], got.gradients[0], i);
            }) == 0);
    }
  }
}

void check_threads(const NormSpec& spec) {
  std::vector<NormCase> cases = large_cases(spec.layout);
  cases.push_back({.groups = 8, .n = 400});
  for (const NormCase& listed : cases) {
    const NormCase c = of(spec, listed);
    CAPTURE(c.text());
    const NormData data = make_data(c);
    const NormResult expected = run_fast(spec, data, 1);
    for (int threads : {2, 3, 7}) {
      CAPTURE(threads);
      CHECK(same_bits(run_fast(spec, data, threads), expected));
    }
  }
}

// Rows `rows` of x and dy.
NormData take_rows(const NormData& data, const std::vector<std::int64_t>& rows) {
  const std::int64_t n = data.x.shape().back();
  const Shape shape{std::int64_t(rows.size()), n};
  NormData taken{Tensor(DType::kF64, shape), Tensor(DType::kF64, shape), {}, {}, {}, data.eps};
  if (data.gain) taken.gain = data.gain->clone();
  if (data.bias) taken.bias = data.bias->clone();
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const std::int64_t from = rows[std::size_t(i / n)] * n + i % n;
    taken.x.as<double>()[std::size_t(i)] = data.x.at(from);
    taken.dy.as<double>()[std::size_t(i)] = data.dy.at(from);
  }
  return taken;
}

void check_rows_alone(const NormSpec& spec, const NormCase& c,
                      const std::vector<std::int64_t>& rows) {
  const NormData data = make_data(c);
  const NormResult all = run_fast(spec, data), taken = run_fast(spec, take_rows(data, rows));
  const auto check = [&](const Tensor& some, const Tensor& whole) {
    if (whole.elements() % c.groups != 0 || whole.elements() == 0) return;
    const std::size_t bytes = std::size_t(whole.bytes() / c.groups);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(i);
      const std::byte* row = whole.data() + std::size_t(rows[i]) * bytes;
      CHECK(std::memcmp(some.data() + i * bytes, row, bytes) == 0);
    }
  };
  for (std::size_t j = 0; j < all.outputs.size(); ++j) check(taken.outputs[j], all.outputs[j]);
  check(taken.gradients[0], all.gradients[0]);
}

void check_rows(const NormSpec& spec) {
  for (std::int64_t n : {2, 17, 128, 600, 1000, 2500}) {
    const NormCase c = of(spec, {.groups = 43, .n = n, .mean = 10});
    CAPTURE(c.text());
    std::vector<std::int64_t> order(std::size_t(c.groups));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = std::int64_t(i * 29 % order.size());
    check_rows_alone(spec, c, order);
    check_rows_alone(spec, c, {5, 6, 7, 8, 9, 10, 11});
    check_rows_alone(spec, c, {42});
  }
}

void check_in_place(const NormSpec& spec) {
  const NormCase c = of(spec, {.groups = 150, .n = 301});
  const NormData data = make_data(c);
  CHECK(same_bits(run_reference(spec, data, true), run_reference(spec, data)));
  if (!has_fast_backend()) return;
  const auto backend = make_backend(default_backend(), {3});
  const NormResult expected = run_norm(*backend, spec.build, data);
  int different = 0;
  for (int i = 0; i < repeats(200); ++i) {
    different += !same_bits(run_norm(*backend, spec.build, data, true), expected);
  }
  CHECK(different == 0);
}

}  // namespace

void check_agreement(const NormSpec& spec) {
  check_against_reference(spec);
  check_long_sums(spec);
  if (spec.own_statistics) check_specials(spec);
}

void check_norm(const NormSpec& spec) {
  SUBCASE("gradients") { check_gradients(spec); }
  SUBCASE("in place") { check_in_place(spec); }
  if (spec.own_statistics) {
    SUBCASE("constant groups give the bias") { check_constant_groups(spec); }
  }
  if (!has_fast_backend()) return;
  SUBCASE("it agrees with the reference") { check_agreement(spec); }
  SUBCASE("any thread count") { check_threads(spec); }
  if (spec.layout == NormLayout::kRows) {
    SUBCASE("any order and split of rows") { check_rows(spec); }
  }
}

void check_golden(const NormSpec& spec, std::string_view section,
                  std::initializer_list<std::string_view> keys) {
  const auto input = [](std::string_view key) { return golden("inputs", key); };
  for (const std::string& backend : {std::string("reference"), default_backend()}) {
    NormData data{input("x"), input("dy"), input("gamma"), input("beta"), {}, 1e-5};
    const Shape channels{6};
    for (int i = 0; i < spec.states; ++i) {
      data.state.push_back(random_normal(channels, 5, i == 0 ? 0 : 1, 0));
    }
    const NormResult result = run_norm(*make_backend(backend, {2}), spec.build, data);
    for (std::string_view key : keys) {
      const Tensor expected = golden(section, key);
      const Tensor& got = key == "y"        ? result.outputs[0]
                          : key == "dx"     ? result.gradients[0]
                          : key == "dgamma" ? result.gradients[1]
                                            : result.gradients[2];
      for (std::int64_t i = 0; i < expected.elements(); ++i) {
        CAPTURE(backend);
        CAPTURE(key);
        CAPTURE(i);
        CHECK(std::abs(got.at(i) - expected.at(i)) <= 1e-5);
      }
    }
  }
}

}  // namespace keel::test
