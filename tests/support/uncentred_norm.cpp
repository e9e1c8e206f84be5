#include "tests/support/uncentred_norm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/backends.h"
#include "frontend/compare/cases/norm_errors.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/norm/norm.h"
#include "src/ops/reduce.h"
#include "tests/support/graph_runner.h"
#include "tests/support/norm_checks.h"
#include "tests/support/tested_backends.h"
#include "tests/support/thoroughness.h"

namespace keel::test {
namespace {

std::vector<Tensor> clones(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& t : tensors) copies.push_back(t.clone());
  return copies;
}

NormData make_positive_data(const NormCase& c, int states) {
  NormData data = make_data(c);
  for (int i = 0; i < states; ++i) {
    data.state.push_back(random_normal(c.parameter_shape(), 0, 1, 0));
  }
  return data;
}

void compare(const UncentredSpec& spec, const NormCase& c, const NormData& data) {
  CAPTURE(c.text());
  const NormResult got = run_norm(*make_backend(default_backend(), {2}), spec.build, data);
  const NormResult expected = run_norm(*make_backend("reference"), spec.build, data);
  const NormErrors errors = norm_errors(c, data, got, expected);
  CHECK(errors.forward <= kForwardBound);
  CHECK(errors.dx <= kBackwardBound);
  CHECK(errors.parameters <= kBackwardBound);
  CHECK(got.workspace <= (1 << 20) + 64 * c.groups);
}

void check_against_reference(const UncentredSpec& spec) {
  std::vector<NormCase> cases = tested_cases(spec.layout);
  for (const NormCase& c : tested_large_cases(spec.layout)) cases.push_back(c);
  for (const NormCase& c : cases) {
    if (c.groups > 0) compare(spec, c, make_positive_data(c, spec.states));
  }
}

void check_threads(const UncentredSpec& spec) {
  for (const NormCase& c : tested_large_cases(spec.layout)) {
    CAPTURE(c.text());
    const NormData data = make_positive_data(c, spec.states);
    const NormResult expected = run_norm(*make_backend(default_backend(), {1}), spec.build, data);
    for (int threads : {2, 3, 7}) {
      CAPTURE(threads);
      CHECK(same_bits(run_norm(*make_backend(default_backend(), {threads}), spec.build, data),
                      expected));
    }
  }
}

void check_in_place(const UncentredSpec& spec) {
  const NormCase c{spec.layout, 150, 301};
  const NormData data = make_positive_data(c, spec.states);
  for (const std::string& name : tested_backends()) {
    const auto backend = make_backend(name, {3});
    const NormResult expected = run_norm(*backend, spec.build, data);
    int different = 0;
    for (int i = 0; i < repeats(50); ++i) {
      different += !same_bits(run_norm(*backend, spec.build, data, true), expected);
    }
    CHECK(different == 0);
  }
}

// The groups of a special case by what is in them.
struct UncentredSpecial {
  enum : std::int64_t { kNormal, kNan, kInfinite, kTiny, kZero, kHuge, kLargest, kSpecials };
};

void check_specials(const UncentredSpec& spec) {
  for (std::int64_t n : {2, 37, 1025}) {
    const NormCase c{spec.layout, UncentredSpecial::kSpecials, n};
    NormData data = make_positive_data(c, spec.states);
    const Tensor z = random_normal(Shape{n}, 8);
    const double largest = std::numeric_limits<float>::max() / 4;
    set_group(data, c, UncentredSpecial::kTiny, [&](auto e) { return 1e-30 * z.at(e); });
    set_group(data, c, UncentredSpecial::kZero, [](auto) { return 0; });
    if (spec.own_statistics) {
      set_group(data, c, UncentredSpecial::kHuge, [&](auto e) { return 1e30 * z.at(e); });
      set_group(data, c, UncentredSpecial::kLargest,
                [&](auto e) { return e % 2 ? largest : -largest; });
    }
    compare(spec, c, data);
    const NormResult finite = run_norm(*make_backend(default_backend()), spec.build, data);
    data.x.as<double>()[std::size_t(c.at(UncentredSpecial::kNan, n / 2))] = NAN;
    data.x.as<double>()[std::size_t(c.at(UncentredSpecial::kInfinite, n - 1))] = INFINITY;
    const NormResult got = run_norm(*make_backend(default_backend()), spec.build, data);
    CHECK(std::isnan(got.outputs[NormOutput::kY].at(c.at(UncentredSpecial::kNan, n / 2))));
    for (std::int64_t k = 0; k < UncentredSpecial::kSpecials; ++k) {
      if (k == UncentredSpecial::kNan || k == UncentredSpecial::kInfinite) continue;
      int different = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t e = c.at(k, i);
        different += got.outputs[NormOutput::kY].at(e) != finite.outputs[NormOutput::kY].at(e);
        different +=
            got.gradients[AffineGradient::kDx].at(e) != finite.gradients[AffineGradient::kDx].at(e);
      }
      CHECK(different == 0);
    }
  }
}

// x without the rows that the mask leaves out.
Tensor keep_rows(const Tensor& x, const Tensor& mask) {
  std::vector<double> values;
  const std::int64_t width = x.shape().back();
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    if (mask.at(i / width) != 0) values.push_back(x.at(i));
  }
  return Tensor::of<double>({std::int64_t(values.size()) / width, width}, values);
}

// Elements that differ by more than tolerance * max(1, largest |expected|).
std::int64_t differences(const Tensor& got, const Tensor& expected, double tolerance) {
  REQUIRE(got.shape() == expected.shape());
  double scale = 1;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    scale = std::max(scale, std::abs(expected.at(i)));
  }
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    count += !(std::abs(got.at(i) - expected.at(i)) <= tolerance * scale);
  }
  return count;
}

// "y", "dx", "dgain", "dbias" and outputs "y1", "y2", ...; dy is the gradient of y.
Results run_rows(const std::string& backend, const MaskedBuild& build, const NormData& data,
                 const Tensor* mask) {
  Graph g;
  Feeds feeds;
  const auto feed = [&](const std::string& name, const Tensor& t) {
    feeds[name] = t.clone();
    return g.input(name, {is_floating(t.dtype()) ? DType::kF32 : t.dtype(), t.shape()});
  };
  NormInputs in{feed("x", data.x), feed("gain", *data.gain), feed("bias", *data.bias), {}};
  for (const Tensor& state : data.state) {
    in.state.push_back(feed(fmt::format("state{}", in.state.size()), state));
  }
  const Value y = build(g, in, mask ? feed("mask", *mask) : Value{}), dy = feed("dy", data.dy);
  const Value wrt[] = {in.x, in.gain, in.bias};
  const std::vector<Value> d = gradient(g, ops::sum(g, ops::mul(g, y, dy)), wrt);
  g.mark_output("y", y);
  for (int port = 1; port < int(g.node(y).outputs.size()); ++port) {
    if (g.shape(y.at(port)) != Shape{0}) g.mark_output(fmt::format("y{}", port), y.at(port));
  }
  const char* names[] = {"dx", "dgain", "dbias"};
  for (int i = 0; i < 3; ++i) g.mark_output(names[i], d[std::size_t(i)]);
  return run_graph(*make_backend(backend), g, feeds);
}

void check_masked(const std::string& backend, const MaskedBuild& build, NormData data,
                  const Tensor& mask) {
  const NormData kept{keep_rows(data.x, mask), keep_rows(data.dy, mask), data.gain->clone(),
                      data.bias->clone(),      clones(data.state),       data.eps};
  for (std::int64_t i = 0; i < data.x.elements(); ++i) {
    if (mask.at(i / data.x.shape().back()) != 0) continue;
    data.x.as<double>()[std::size_t(i)] = data.dy.as<double>()[std::size_t(i)] = NAN;
  }
  const Results got = run_rows(backend, build, data, &mask);
  for (const auto& [name, expected] : run_rows(backend, build, kept, nullptr)) {
    CAPTURE(name);
    const bool has_rows = name == "y" || name == "dx";
    const Tensor remaining = has_rows ? keep_rows(got.at(name), mask) : got.at(name).clone();
    CHECK(differences(remaining, expected, 1e-6) == 0);
    int not_zero = 0;
    for (std::int64_t i = 0; has_rows && i < data.x.elements(); ++i) {
      not_zero += mask.at(i / data.x.shape().back()) == 0 && got.at(name).at(i) != 0;
    }
    CHECK(not_zero == 0);
  }
}

}  // namespace

void check_uncentred_norm(const UncentredSpec& spec) {
  SUBCASE("in place") { check_in_place(spec); }
  if (default_backend() == "reference") return;
  SUBCASE("it agrees with the reference") { check_against_reference(spec); }
  SUBCASE("any thread count") { check_threads(spec); }
  SUBCASE("special values") { check_specials(spec); }
}

void check_row_mask(const MaskedBuild& build, int states) {
  for (const auto& [rows, channels] : {std::pair{9, 5}, {150, 130}, {3000, 37}}) {
    const NormCase c{NormLayout::kColumns, channels, rows};
    Tensor mask(DType::kU8, Shape{rows});
    for (int row = 0; row < rows; ++row) {
      mask.as<std::uint8_t>()[std::size_t(row)] = row % 3 != 1 && row / 70 != 1;
    }
    for (const std::string& backend : tested_backends()) {
      CAPTURE(c.text());
      CAPTURE(backend);
      check_masked(backend, build, make_positive_data(c, states), mask);
    }
  }
}

}  // namespace keel::test
