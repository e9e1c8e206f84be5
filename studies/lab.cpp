#include "studies/lab.h"

#include <cmath>

#include "frontend/nn/norm.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::study {

Layer norm_layer(const std::string& norm) {
  return [parsed = nn::Norm::parse(norm)](Graph& g, Value x) {
    nn::Net net{.graph = g, .dtype = DType::kF64};
    return parsed(net, "norm", x);
  };
}

Passed pass(Backend& backend, const Layer& layer, const Tensor& x, const Tensor& dy) {
  Graph g;
  const Value in = input(g, "x", x.shape()), weights = input(g, "dy", dy.shape());
  const Value y = layer(g, in);
  const Value wrt[] = {in};
  g.mark_output("y", y);
  g.mark_output("dx", gradient(g, dot(g, y, weights), wrt)[0]);
  Tensors feeds;
  feeds["x"] = x.clone();
  feeds["dy"] = dy.clone();
  Tensors results = run_graph(backend, g, feeds, kDeclared);
  return {std::move(results.at("y")), std::move(results.at("dx"))};
}

Value input(Graph& g, const std::string& name, const Shape& shape) {
  return g.input(name, {DType::kF64, shape});
}

Value dot(Graph& g, Value a, Value b) { return ops::sum(g, ops::mul(g, a, b)); }

Tensor normal(const Shape& shape, std::uint64_t seed, std::string_view name) {
  Tensor result(DType::kF64, shape);
  const Philox random(seed, stream_of(name));
  std::uint64_t element = 0;
  for (double& value : result.as<double>()) value = random.normal(element++);
  return result;
}

Tensor spread(const Tensor& t, std::uint64_t seed,
              const std::function<std::int64_t(std::int64_t)>& group_of) {
  const Philox random(seed, stream_of("spread"));
  std::int64_t last = -1;
  double deviation = 1, offset = 0;
  return mapped(t, [&](double value, std::int64_t i) {
    const std::int64_t group = group_of(i);
    if (group != last) {  // a row's elements follow one another
      deviation = std::pow(10, 2 * random.uniform(2 * std::uint64_t(group)) - 1);
      offset = 6 * random.uniform(2 * std::uint64_t(group) + 1) - 3;
      last = group;
    }
    return deviation * (value + offset);
  });
}

Tensor mapped(const Tensor& t, const std::function<double(double, std::int64_t)>& f) {
  Tensor result = t.clone();
  std::int64_t i = 0;
  for (double& value : result.as<double>()) value = f(value, i++);
  return result;
}

Tensor scaled(const Tensor& t, double factor) {
  return mapped(t, [factor](double value, std::int64_t) { return factor * value; });
}

std::span<const double> row(const Tensor& t, std::int64_t i) {
  const auto width = std::size_t(t.shape().back());
  return t.as<double>().subspan(std::size_t(i) * width, width);
}

std::vector<double> column(const Tensor& t, std::int64_t c) {
  std::vector<double> result;
  for (std::int64_t i = c; i < t.elements(); i += t.shape().back()) result.push_back(t.at(i));
  return result;
}

double mean(std::span<const double> a) {
  double sum = 0;
  for (double value : a) sum += value;
  return sum / double(a.size());
}

double mean_product(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum / double(a.size());
}

double variance(std::span<const double> a) {
  const double centre = mean(a);
  double sum = 0;
  for (double value : a) sum += (value - centre) * (value - centre);
  return sum / double(a.size());
}

double length(std::span<const double> a) {
  return std::sqrt(mean_product(a, a) * double(a.size()));
}

double cosine(std::span<const double> a, std::span<const double> b) {
  const double lengths = length(a) * length(b);
  return lengths == 0 ? 0 : mean_product(a, b) * double(a.size()) / lengths;
}

void take_largest(double& largest, double value) {
  if (std::isnan(value) || value > largest) largest = value;
}

void take_smallest(double& smallest, double value) {
  if (std::isnan(value) || value < smallest) smallest = value;
}

double largest_difference(std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) take_largest(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace keel::study
