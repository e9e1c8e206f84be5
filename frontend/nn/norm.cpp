#include "frontend/nn/norm.h"

#include <vector>

#include "frontend/nn/init.h"
#include "src/core/nearest.h"
#include "src/ops/layout.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/layer_norm.h"

namespace keel::nn {
namespace {

using OptionText = std::vector<std::pair<std::string, std::string>>;

// "a=1,b=2" as pairs.
OptionText split_options(std::string_view text, std::string_view norm) {
  OptionText options;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const std::size_t equals = item.find('=');
    check(equals != std::string_view::npos && equals > 0, ErrorKind::kUsage,
          "norm {}: expected key=value, got '{}'", norm, item);
    options.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return options;
}

template <class Options>
Options read_options(const OptionText& given, std::string_view norm) {
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

ops::NormAffine affine(Net& net, const Shape& shape, bool gain, bool bias) {
  const auto parameter = [&](const char* name, Initializer initializer) {
    return net.graph.parameter(net.graph.prefix() + name, {net.dtype, shape},
                               std::move(initializer));
  };
  ops::NormAffine result;
  if (gain) result.gain = parameter("gain", ones());
  if (bias) result.bias = parameter("bias", zeros());
  return result;
}

struct LayerNormOptions {
  std::int64_t axes = 0;  // trailing axes of a row; 0: all but the first for images, else one
  double eps = 1e-5;
  bool gain = true, bias = true, unbiased = false, eps_outside = false;
  static constexpr auto fields() {
    return std::tuple{field("axes", &LayerNormOptions::axes),
                      field("eps", &LayerNormOptions::eps),
                      field("gain", &LayerNormOptions::gain),
                      field("bias", &LayerNormOptions::bias),
                      field("unbiased", &LayerNormOptions::unbiased),
                      field("eps_outside", &LayerNormOptions::eps_outside)};
  }
};

Value apply_layer_norm(Net& net, const LayerNormOptions& options, Value x) {
  const Shape shape = net.graph.shape(x);
  LayerNormAttrs attrs{
      .eps = options.eps, .unbiased = options.unbiased, .eps_outside = options.eps_outside};
  attrs.axes = options.axes > 0 ? options.axes : shape.rank() == 4 ? 3 : 1;
  check(attrs.axes <= shape.rank(), ErrorKind::kUsage, "[layer_norm] axes: {} has only {}",
        shape.text(), shape.rank());
  const Shape row(shape.sizes().last(std::size_t(attrs.axes)));
  return ops::layer_norm(net.graph, x, affine(net, row, options.gain, options.bias), attrs);
}

struct BatchNormOptions {
  double eps = 1e-5, keep = 0.9;
  bool gain = true, bias = true, unbiased = false, running_unbiased = false;
  static constexpr auto fields() {
    return std::tuple{field("eps", &BatchNormOptions::eps),
                      field("keep", &BatchNormOptions::keep),
                      field("gain", &BatchNormOptions::gain),
                      field("bias", &BatchNormOptions::bias),
                      field("unbiased", &BatchNormOptions::unbiased),
                      field("running_unbiased", &BatchNormOptions::running_unbiased)};
  }
};

Value apply_batch_norm(Net& net, const BatchNormOptions& options, Value x) {
  Graph& g = net.graph;
  const Shape shape = g.shape(x);
  const bool image = shape.rank() == 4;
  const std::int64_t channels = image ? shape[1] : shape.back();
  if (!image) x = ops::reshape(g, x, {shape.elements(0, shape.rank() - 1), channels});
  const TensorType statistic{net.dtype, {channels}};
  const ops::RunningStatistics running{g.state(g.prefix() + "running_mean", statistic, zeros()),
                                       g.state(g.prefix() + "running_var", statistic, ones())};
  const BatchNormAttrs attrs{.eps = options.eps,
                             .keep = options.keep,
                             .unbiased = options.unbiased,
                             .running_unbiased = options.running_unbiased,
                             .training = net.training()};
  const Value y =
      ops::batch_norm(g, x, affine(net, {channels}, options.gain, options.bias), running, attrs);
  if (attrs.training) {
    net.update(running.mean, y.at(3));
    net.update(running.var, y.at(4));
  }
  return ops::reshape(g, y, shape);
}

struct NoOptions {
  static constexpr auto fields() { return std::tuple{}; }
};

struct Row {
  NormFacts facts;
  Norm (*make)(const OptionText& given);
};

Norm make_none(const OptionText& given) {
  read_options<NoOptions>(given, "none");
  return {"none", "", [](Net&, Value x) { return x; }, false, false};
}

Norm make_layer_norm(const OptionText& given) {
  const auto options = read_options<LayerNormOptions>(given, "layernorm");
  const auto apply = [options](Net& net, Value x) { return apply_layer_norm(net, options, x); };
  return {"layernorm", fields_text(options), apply, false, options.bias};
}

Norm make_layer_norm_simple(const OptionText& given) {
  OptionText all{{"gain", "false"}, {"bias", "false"}};
  all.insert(all.end(), given.begin(), given.end());
  const auto options = read_options<LayerNormOptions>(all, "layernorm_simple");
  const auto apply = [options](Net& net, Value x) { return apply_layer_norm(net, options, x); };
  return {"layernorm_simple", fields_text(options), apply, false, options.bias};
}

Norm make_batch_norm(const OptionText& given) {
  const auto options = read_options<BatchNormOptions>(given, "batchnorm");
  const auto apply = [options](Net& net, Value x) { return apply_batch_norm(net, options, x); };
  return {"batchnorm", fields_text(options), apply, true, options.bias};
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table{
      {{"none", "y = x", "-", "-", "exact", "Xu et al. 2019, w/o Norm"}, make_none},
      {{"layernorm", "y = gain (x - mean) / sqrt(var + eps) + bias, over a row", "gain, bias", "-",
        "exact", "Ba, Kiros, Hinton 2016, eq. 3"},
       make_layer_norm},
      {{"layernorm_simple", "y = (x - mean) / sqrt(var + eps), over a row", "-", "-", "exact",
        "Xu et al. 2019, eq. 2"},
       make_layer_norm_simple},
      {{"batchnorm", "y = gain (x - mean) / sqrt(var + eps) + bias, over the batch", "gain, bias",
        "running_mean, running_var", "exact",
        "Ioffe & Szegedy 2015; Shen et al. 2020, algorithm 1"},
       make_batch_norm},
  };
  return table;
}

}  // namespace

Norm::Norm(std::string name, std::string options, Apply apply, bool batch_type, bool has_bias)
    : name_(std::move(name)),
      options_(std::move(options)),
      apply_(std::move(apply)),
      batch_type_(batch_type),
      has_bias_(has_bias) {}

Norm Norm::parse(std::string_view text, std::string_view defaults) {
  const std::size_t brace = text.find('{');
  const std::string name(text.substr(0, brace));
  std::string_view given;
  if (brace != std::string_view::npos) {
    check(text.back() == '}', ErrorKind::kUsage, "norm '{}': expected a closing brace", text);
    given = text.substr(brace + 1, text.size() - brace - 2);
  }
  std::vector<std::string> names;
  for (const Row& row : rows()) {
    names.push_back(row.facts.name);
    if (row.facts.name != name) continue;
    OptionText options = split_options(defaults, name);
    for (auto& option : split_options(given, name)) options.push_back(option);
    return row.make(options);
  }
  fail(ErrorKind::kUsage, "norm: {}", unknown_name(name, names));
}

Value Norm::operator()(Net& net, const std::string& name, Value x) const {
  const auto scope = net.graph.scope(name);
  return apply_(net, x);
}

std::span<const NormFacts> norm_facts() {
  static const std::vector<NormFacts> facts = [] {
    std::vector<NormFacts> list;
    for (const Row& row : rows()) list.push_back(row.facts);
    return list;
  }();
  return facts;
}

}  // namespace keel::nn
