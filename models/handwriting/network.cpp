#include "models/handwriting/network.h"

#include <algorithm>
#include <vector>

#include "src/ops/attention_window.h"
#include "src/ops/layout.h"
#include "src/ops/stop_gradient.h"

namespace keel::models {
namespace {

// Biases of the window's components, for alpha, beta and kappa.
nn::FanInit window_bias(const HandwritingNetOptions& options) {
  return [options](std::int64_t) -> Initializer {
    return [options](Tensor& value, const Philox&) {
      Tensor bias(DType::kF32, value.shape());
      const std::span<float> b = bias.as<float>();
      const auto bumps = std::size_t(options.sizes.bumps);
      std::ranges::fill(b.subspan(bumps, bumps), float(options.width_bias));
      std::ranges::fill(b.subspan(2 * bumps, bumps), float(options.step_bias));
      value = value.dtype() == DType::kF32 ? std::move(bias) : bias.to(value.dtype());
    };
  };
}

class Builder {
 public:
  Builder(nn::Net& net, const HandwritingNetOptions& options, const HandwritingInputs& in)
      : net_(net), g_(net.graph), options_(options), sizes_(options.sizes), in_(in) {
    const std::int64_t points = g_.shape(in.points)[0];
    for (std::int64_t t = 0; t < points; ++t) {
      sites_.push_back({t, nn::mask_at(net, in.mask, t)});
    }
  }

  HandwritingOutputs build() {
    const std::vector<nn::LstmState> first = first_layer();
    std::vector<Value> h{stack_h(first)}, last = {first.back().h, first.back().c};
    const Value windows = nn::stack(net_, w_);
    for (std::int64_t i = 2; i <= sizes_.layers; ++i) {
      const Value x = ops::concat(g_, {in_.points, h.back(), windows}, 2);
      const std::vector<nn::LstmState> states = later_layer(i, x);
      h.push_back(stack_h(states));
      last.push_back(states.back().h);
      last.push_back(states.back().c);
    }
    last.push_back(kappa_);
    last.push_back(w_.back());
    const Value all = h.size() == 1 ? h[0] : ops::concat(g_, h, 2);
    const Shape shape = g_.shape(all);
    const Value flat = ops::reshape(g_, all, {shape[0] * shape[1], shape[2]});
    const Value y = nn::linear(net_, "density", flat, sizes_.density(), layer_options());
    return {clipped(y, options_.clip_output), components_, ops::concat(g_, last, 1)};
  }

 private:
  nn::LayerOptions layer_options() const {
    const double deviation = options_.init_deviation;
    return {.weight_init = [deviation](std::int64_t) { return nn::normal(deviation); }};
  }

  nn::Lstm lstm(std::int64_t layer, std::int64_t in) const {
    nn::CellOptions options{.norms = options_.norms};
    options.input_init = options.recurrent_init = layer_options().weight_init;
    return {net_, fmt::format("lstm{}", layer), in, sizes_.width, options};
  }

  // Columns [first, first + count) of the state before the first point.
  Value carried(std::int64_t first, std::int64_t count) const {
    return ops::slice_axis(g_, in_.state, 1, first, count);
  }
  nn::LstmState carried_state(std::int64_t layer) const {
    const std::int64_t width = sizes_.width, first = 2 * (layer - 1) * width;
    return {carried(first, width), carried(first + width, width)};
  }

  Value clipped(Value x, double limit) const {
    return limit > 0 ? ops::clip_gradient(g_, x, limit) : x;
  }
  // A step of a layer; what comes back to h, of all that reads it, is clipped.
  nn::LstmState step(const nn::Lstm& cell, Value projected, const nn::LstmState& before,
                     const nn::LayerCall& site) const {
    const nn::LstmState state = cell.step(projected, before, site);
    return {clipped(state.h, options_.clip_cells), state.c};
  }

  // The layer with the window, which reads at every point what it has made of the one before.
  std::vector<nn::LstmState> first_layer() {
    const nn::Lstm cell = lstm(1, 3 + sizes_.symbols);
    nn::LayerOptions options = layer_options();
    options.bias_init = window_bias(options_);
    const nn::Linear window(net_, "window", sizes_.width, 3 * sizes_.bumps, options);
    const std::int64_t behind_cells = 2 * sizes_.layers * sizes_.width;
    nn::LstmState state = carried_state(1);
    kappa_ = carried(behind_cells, sizes_.bumps);
    Value w = carried(behind_cells + sizes_.bumps, sizes_.symbols);
    std::vector<nn::LstmState> states;
    const std::vector<Value> points = nn::unstack(net_, in_.points);
    for (std::size_t t = 0; t < points.size(); ++t) {
      const Value x = ops::concat(g_, {points[t], w}, 1);
      state = step(cell, cell.project_step(x, sites_[t]), state, sites_[t]);
      components_ = window(state.h);
      const auto scope = g_.scope("window");
      const ops::AttentionWindow moved =
          ops::attention_window(g_, components_, kappa_, in_.text, sizes_.symbols);
      kappa_ = moved.kappa;
      w = moved.w;
      w_.push_back(w);
      states.push_back(state);
    }
    return states;
  }

  std::vector<nn::LstmState> later_layer(std::int64_t layer, Value x) const {
    const nn::Lstm cell = lstm(layer, 3 + sizes_.width + sizes_.symbols);
    const std::vector<Value> projected = cell.project(x, in_.mask);
    nn::LstmState state = carried_state(layer);
    std::vector<nn::LstmState> states;
    for (std::size_t t = 0; t < projected.size(); ++t) {
      state = step(cell, projected[t], state, sites_[t]);
      states.push_back(state);
    }
    return states;
  }

  Value stack_h(const std::vector<nn::LstmState>& states) const {
    std::vector<Value> h;
    for (const nn::LstmState& state : states) h.push_back(state.h);
    return nn::stack(net_, h);
  }

  nn::Net& net_;
  Graph& g_;
  const HandwritingNetOptions& options_;
  const HandwritingSizes& sizes_;
  const HandwritingInputs& in_;
  std::vector<nn::LayerCall> sites_;  // of each point
  Value kappa_, components_;
  std::vector<Value> w_;  // of each point
};

}  // namespace

HandwritingOutputs handwriting_network(nn::Net& net, const HandwritingNetOptions& options,
                                       const HandwritingInputs& in) {
  return Builder(net, options, in).build();
}

}  // namespace keel::models
