#include "studies/residual_network.h"

#include <cmath>

#include "frontend/nn/layers.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::study {
namespace {

const std::string kFirstSite = "block1/norm";

nn::LayerOptions weights(double variance) {
  return {.bias = false, .weight_init = [variance](std::int64_t fan_in) {
            return nn::normal(std::sqrt(variance / double(fan_in)));
          }};
}

void mark_distances(nn::Net& net, const std::string& site, Value x) {
  Graph& g = net.graph;
  const Value mean = ops::mean(g, x, {0});
  const std::pair<std::string, Value> statistics[] = {
      {"running_mean", mean},
      {"running_var", ops::mean(g, ops::square(g, ops::sub(g, x, mean)), {0})},
      {"psi2", ops::mean(g, ops::square(g, x), {0})}};
  for (const auto& [name, batch] : statistics) {
    const Value running = g.find_leaf(site + "/" + name);
    if (!running.valid()) continue;
    const Value square = ops::sum(g, ops::square(g, ops::sub(g, batch, running)));
    g.mark_output("distance/" + name,
                  ops::scale(g, ops::sqrt(g, square), 1.0 / double(g.shape(x).back())));
  }
}

}  // namespace

void ResidualOptions::validate() const {
  check(data == "vectors" || data == "sentences", ErrorKind::kUsage,
        "data: expected vectors or sentences, got {}", data);
  nn::Norm::parse(norm);
}

task::Prepared Residual::prepare(const task::DataRequest& request, const task::Assets*) const {
  const MiniData sizes{request.seed, options_.train_rows, options_.test_rows, options_.features,
                       options_.classes};
  return {restore({}),
          in_order(options_.data == "vectors" ? vectors(sizes) : sentences(sizes, options_.spread),
                   options_.order)};
}

std::vector<task::Input> ResidualNetwork::inputs(const task::Sizes& sizes) const {
  return data::inputs_of(mini_columns(options_.features), sizes);
}

task::Outputs ResidualNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const nn::LayerOptions hidden = weights(options_.hidden_variance);
  Value h = nn::linear(net, "in", in["x"], options_.width, hidden);
  if (net.mode == nn::Mode::kProbe) g.mark_output("stem", h);
  for (std::int64_t i = 1; i <= options_.blocks; ++i) {
    const std::string block = fmt::format("block{}", i);
    if (options_.post) {
      h = normalize(net, block + "/norm", ops::add(g, h, branch(net, block, h)));
    } else {
      h = ops::add(g, h, branch(net, block, normalize(net, block + "/norm", h)));
    }
  }
  if (!options_.post) h = normalize(net, "norm", h);
  const Value logits =
      nn::linear(net, "logits", h, options_.classes, weights(options_.logit_variance));
  return task::classification(g, logits, in["label"]);
}

// relu(h A) B
Value ResidualNetwork::branch(nn::Net& net, const std::string& block, Value h) const {
  const nn::LayerOptions hidden = weights(options_.hidden_variance);
  const Value wide = nn::linear(net, block + "/a", h, options_.hidden, hidden);
  return nn::linear(net, block + "/b", ops::relu(net.graph, wide), options_.width, hidden);
}

Value ResidualNetwork::normalize(nn::Net& net, const std::string& site, Value x) const {
  if (options_.layer_scale) x = nn::Norm::parse("layerscaling")(net, site + "/scale", x);
  const Value y = nn::Norm::parse(options_.norm)(net, site, x);
  if (site == kFirstSite && net.mode == nn::Mode::kTrain) mark_distances(net, site, x);
  return y;
}

}  // namespace keel::study
