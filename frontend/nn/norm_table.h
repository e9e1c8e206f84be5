// The table behind Norm::parse: one row a name. Internal to the norm_*.cpp files.
//
// A variant is a struct of options with fields(), apply(net, x) and has_bias(); kBatchType says
// whether its statistics are taken over the batch.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "frontend/nn/init.h"
#include "frontend/nn/norm.h"
#include "src/core/nearest.h"
#include "src/ops/layout.h"
#include "src/ops/norm/norm.h"

namespace keel::nn {

using OptionText = std::vector<std::pair<std::string, std::string>>;

struct NormRow {
  NormFacts facts;
  std::string preset;  // "key=value,..." that tells this name from others of the same struct
  Norm (*make)(const std::string& name, const OptionText& given);
};

std::span<const NormRow> row_norms();        // of a row by its own statistics
std::span<const NormRow> group_norms();      // of groups of a row's features
std::span<const NormRow> column_norms();     // of a feature by its mean and variance over the batch
std::span<const NormRow> quadratic_norms();  // of a feature by its quadratic mean over the batch

template <class Options>
Options read_options(const std::string& norm, const OptionText& given) {
  Options options;
  std::vector<std::string> names;
  std::apply([&](const auto&... f) { (names.emplace_back(f.name), ...); }, Options::fields());
  for (const auto& [key, value] : given) {
    try {
      check(set_field(options, key, value), ErrorKind::kUsage, "{}", unknown_name(key, names));
    } catch (const Error& error) {
      fail(ErrorKind::kUsage, "norm {}: option {}: {}", norm, key, error.what());
    }
  }
  return options;
}

template <class Options>
Norm make_norm(const std::string& name, const OptionText& given) {
  const Options options = read_options<Options>(name, given);
  return {name, fields_text(options),
          [options](Net& net, Value x) { return options.apply(net, x); }, Options::kBatchType,
          options.has_bias()};
}

// gain (ones) and bias (zeros) of that shape, as asked for.
inline ops::NormAffine make_affine(Net& net, const Shape& shape, bool gain, bool bias) {
  const auto parameter = [&](const char* name, Initializer initializer) {
    return net.graph.parameter(net.graph.prefix() + name, {net.dtype, shape},
                               std::move(initializer));
  };
  ops::NormAffine result;
  if (gain) result.gain = parameter("gain", ones());
  if (bias) result.bias = parameter("bias", zeros());
  return result;
}

// x as the column norms take it: images (n, c, h, w) as they are, else (rows, features).
struct Columns {
  Columns(Net& net, Value value) : x(value), shape(net.graph.shape(value)) {
    const bool image = shape.rank() == 4;
    channels = Shape{image ? shape[1] : shape.back()};
    if (!image) x = ops::reshape(net.graph, x, {shape.elements(0, shape.rank() - 1), channels[0]});
  }
  // y in the shape that x came in.
  Value restore(Net& net, Value y) const { return ops::reshape(net.graph, y, shape); }

  Value x;
  Shape shape, channels;
};

// A running statistic of the layer.
inline Value make_state(Net& net, const std::string& name, const Shape& shape, double initial) {
  return net.graph.state(net.graph.prefix() + name, {net.dtype, shape}, constant(initial));
}

// A counter of training steps; 0 at first.
inline Value make_counter(Net& net, const std::string& name) {
  return net.graph.state(net.graph.prefix() + name, {DType::kI32, {}}, nullptr);
}

}  // namespace keel::nn
