// Shared parts of the exact studies: float64 graphs that run once, random numbers, and moments.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "src/runtime/run_graph.h"
#include "studies/study.h"

namespace keel::study {

// The largest error that rounding may add to an identity, relative to the size of its terms:
// float64 rounds to 1.1e-16, and no sum here has more than 4096 terms.
inline constexpr double kRounding = 1e-12;

using Tensors = std::map<std::string, Tensor>;

// Runs the passes, and gives results in their declared types.
inline constexpr RunGraphOptions kDeclared{.optimize = true, .stored = false};

// Appends y = layer(x) to a graph.
using Layer = std::function<Value(Graph&, Value x)>;
// A norm by name, "layernorm_simple{eps=0}", in training.
Layer norm_layer(const std::string& norm);

// y = layer(x), and dx, the gradient of sum(y * dy).
struct Passed {
  Tensor y, dx;
};
Passed pass(Backend& backend, const Layer& layer, const Tensor& x, const Tensor& dy);

// A float64 input of the graph.
Value input(Graph& g, const std::string& name, const Shape& shape);
// sum(a * b), a scalar.
Value dot(Graph& g, Value a, Value b);

// Standard normal numbers in float64, keyed by seed and name.
Tensor normal(const Shape& shape, std::uint64_t seed, std::string_view name);
// The elements of t, shifted and scaled: those of group g = group_of(index) get a mean within 3
// deviations of 0 and a deviation within [0.1, 10], drawn for the group.
Tensor spread(const Tensor& t, std::uint64_t seed,
              const std::function<std::int64_t(std::int64_t)>& group_of);
// A tensor like t with f(element, its index) for each element.
Tensor mapped(const Tensor& t, const std::function<double(double, std::int64_t)>& f);
Tensor scaled(const Tensor& t, double factor);

// Row i of a matrix, and a copy of its column c.
std::span<const double> row(const Tensor& t, std::int64_t i);
std::vector<double> column(const Tensor& t, std::int64_t c);

double mean(std::span<const double> a);
double mean_product(std::span<const double> a, std::span<const double> b);
// The mean of (a - mean)^2.
double variance(std::span<const double> a);
// Euclidean length.
double length(std::span<const double> a);
// The cosine of the angle between two vectors; 0 if one of them is 0.
double cosine(std::span<const double> a, std::span<const double> b);
// largest <- the larger of both, smallest <- the smaller; NaN, once met, stays.
void take_largest(double& largest, double value);
void take_smallest(double& smallest, double value);
// The largest |a - b|.
double largest_difference(std::span<const double> a, std::span<const double> b);

}  // namespace keel::study
