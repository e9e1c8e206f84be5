// Norms of columns with a mask of rows.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/backends.h"
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
      const NormSpec spec{
          .build = nullptr, .layout = NormLayout::kColumns, .states = states, .centred = false};
      check_masked(backend, build, data_of(spec, case_of(spec, c)), mask);
    }
  }
}

}  // namespace keel::test
