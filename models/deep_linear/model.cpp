#include "models/deep_linear/model.h"

#include <cmath>

#include "frontend/data/table_rows.h"
#include "frontend/nn/layers.h"
#include "src/core/rng.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::models {
namespace {

std::vector<data::TableColumn> gaussian_columns(std::int64_t width) {
  return {{"x", DType::kF32, {width}}, {"t", DType::kF32, {width}}};
}

// t = A x in float64, rounded once.
void apply_map(std::span<const double> map, std::span<const float> x, std::span<float> t) {
  for (std::size_t i = 0; i < t.size(); ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += map[i * x.size() + j] * double(x[j]);
    t[i] = float(sum);
  }
}

data::TensorDataset make_gaussian(std::int64_t rows, std::int64_t width, std::uint64_t seed,
                                  std::string_view part) {
  const Philox weights(seed, stream_of("deep_linear.map"));
  std::vector<double> map;
  for (std::int64_t i = 0; i < width * width; ++i) {
    map.push_back(weights.normal(std::uint64_t(i)) / std::sqrt(double(width)));
  }
  const Philox random(seed, stream_of(fmt::format("deep_linear.{}", part)));
  Tensor x(DType::kF32, {rows, width}), t(DType::kF32, {rows, width});
  const auto inputs = x.as<float>(), targets = t.as<float>();
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = float(random.normal(i));
  const auto size = std::size_t(width);
  for (std::size_t first = 0; first < inputs.size(); first += size) {
    apply_map(map, inputs.subspan(first, size), targets.subspan(first, size));
  }
  data::TensorDataset result(fmt::format("a linear map of Gaussian data, {}, seed {}", part, seed));
  result.add("x", std::move(x));
  result.add("t", std::move(t));
  return result;
}

}  // namespace

void DeepLinearOptions::validate() const { nn::Norm::parse(norm); }

std::vector<task::Input> DeepLinearNetwork::inputs(const task::Sizes& sizes) const {
  return data::inputs_of(gaussian_columns(options_.width), sizes);
}

task::Outputs DeepLinearNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const nn::Norm norm = nn::Norm::parse(options_.norm);
  Value h = in["x"];
  for (std::int64_t layer = 1; layer < options_.layers; ++layer) {
    h = nn::linear(net, fmt::format("fc{}", layer), h, options_.width,
                   {.bias = !norm.has_bias(), .norm = norm});
  }
  const Value y = nn::linear(net, "out", h, options_.width);
  const Value loss = ops::sum(g, ops::mean(g, ops::square(g, ops::sub(g, y, in["t"])), {1}));
  return {.loss_sum = loss, .metrics = {{"squared_error", loss}}, .predictions = {{"y", y}}};
}

std::vector<task::MetricInfo> DeepLinear::metrics() const {
  return {{.name = "squared_error", .unit = "", .of = task::mean_of}};
}

task::Prepared DeepLinear::prepare(const task::DataRequest& request, const task::Assets*) const {
  check(request.source == "builtin", ErrorKind::kUsage,
        "data.source: expected builtin, for deep_linear makes its data, got {}", request.source);
  const std::int64_t all = options_.samples, fifth = all / 5;
  const std::int64_t train = request.train_rows > 0 ? std::min(request.train_rows, all) : all;
  const auto part = [width = options_.width, seed = request.seed](std::int64_t rows,
                                                                  std::string_view name) {
    return [=] { return make_gaussian(rows, width, seed, name); };
  };
  return {restore({}), std::make_unique<data::TableSplits>(
                           gaussian_columns(options_.width), part(train, "train"),
                           part(fifth, "valid"), part(fifth, "test"))};
}

}  // namespace keel::models
