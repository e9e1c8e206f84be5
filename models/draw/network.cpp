#include "models/draw/network.h"

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/random_normal.h"
#include "src/ops/reduce.h"

namespace keel::models {
namespace {

Value gamma_of(Graph& g, Value p) {
  return ops::exp(g, ops::slice_axis(g, p, 1, FilterParameter::kLogGamma, 1));
}

// FY x FX^T, (n, N^2)
Value seen(Graph& g, const ops::FilterBank& bank, Value x) {
  const Shape shape = g.shape(bank.fx);
  const Value rows = ops::matmul(g, bank.fy, x);
  const Value patch = ops::matmul(g, rows, bank.fx, {.transpose_b = true});
  return ops::reshape(g, patch, {shape[0], shape[1] * shape[1]});
}

nn::LayerOptions drawn_layer(const DrawNetOptions& options) {
  const double deviation = options.init_deviation;
  return {.weight_init = [deviation](std::int64_t) { return nn::normal(deviation); }};
}

nn::Lstm drawn_lstm(nn::Net& net, const DrawNetOptions& options, const char* name,
                    std::int64_t in) {
  nn::CellOptions cell{.norms = options.norms};
  cell.input_init = cell.recurrent_init = drawn_layer(options).weight_init;
  return {net, name, in, options.sizes.width, cell};
}

// The half that draws: from a latent variable onto the canvas.
class Drawer {
 public:
  Drawer(nn::Net& net, const DrawNetOptions& options, std::int64_t n)
      : net_(net),
        g_(net.graph),
        options_(options),
        n_(n),
        cell_(drawn_lstm(net, options, "decoder", options.sizes.latent)),
        attention_(net, "write_attention", options.sizes.width, FilterParameter::kCount,
                   drawn_layer(options)),
        patch_(net, "write", options.sizes.width, options.sizes.write * options.sizes.write,
               drawn_layer(options)),
        state_(cell_.start(n)) {
    canvas_ = g_.constant(Tensor(net.dtype, {n, options.sizes.rows, options.sizes.columns}));
  }

  Value h() const { return state_.h; }
  Value canvas() const { return canvas_; }

  // Standard normal numbers of each image, other ones at every glimpse.
  Value noise() const {
    return ops::random_normal(g_, {net_.dtype, {n_, options_.sizes.latent}}, options_.key,
                              options_.seed);
  }

  void draw(Value z, std::int64_t t) {
    const nn::LayerCall site{t, {}};
    state_ = cell_.step(cell_.project_step(z, site), state_, site);
    const std::int64_t side = options_.sizes.write;
    const Value p = attention_(state_.h);
    const Value w = ops::reshape(g_, patch_(state_.h), {n_, side, side});
    const auto scope = g_.scope("canvas");
    const ops::FilterBank bank = ops::filter_bank(g_, p, attrs(side));
    const Value rows = ops::matmul(g_, bank.fy, w, {.transpose_a = true});
    const Value drawn = ops::matmul(g_, rows, bank.fx);
    const Value strength = ops::reshape(g_, gamma_of(g_, ops::neg(g_, p)), {n_, 1, 1});
    canvas_ = ops::add(g_, canvas_, ops::mul(g_, drawn, strength));
  }

  FilterBankAttrs attrs(std::int64_t side) const {
    return {side, options_.sizes.rows, options_.sizes.columns, options_.grid};
  }

 private:
  nn::Net& net_;
  Graph& g_;
  const DrawNetOptions& options_;
  std::int64_t n_;
  nn::Lstm cell_;
  nn::Linear attention_, patch_;
  nn::LstmState state_;
  Value canvas_;
};

// The half that looks: from image and canvas to a latent variable.
class Looker {
 public:
  Looker(nn::Net& net, const DrawNetOptions& options, std::int64_t n)
      : net_(net),
        cell_(drawn_lstm(net, options, "encoder",
                         2 * options.sizes.read * options.sizes.read + options.sizes.width)),
        attention_(net, "read_attention", options.sizes.width, FilterParameter::kCount,
                   drawn_layer(options)),
        mean_(net, "mean", options.sizes.width, options.sizes.latent, drawn_layer(options)),
        log_deviation_(net, "log_deviation", options.sizes.width, options.sizes.latent,
                       drawn_layer(options)),
        state_(cell_.start(n)) {}

  // z of glimpse t.
  Value look(const Drawer& drawer, Value x, const FilterBankAttrs& attrs, std::int64_t t) {
    Graph& g = net_.graph;
    const Value p = attention_(drawer.h());
    const auto scope = g.scope("glimpse");
    const ops::FilterBank bank = ops::filter_bank(g, p, attrs);
    const Value missing = ops::sub(g, x, ops::sigmoid(g, drawer.canvas()));
    const Value both = ops::concat(g, {seen(g, bank, x), seen(g, bank, missing)}, 1);
    const Value r = ops::mul(g, both, gamma_of(g, p));
    const nn::LayerCall site{t, {}};
    const Value in = ops::concat(g, {r, drawer.h()}, 1);
    state_ = cell_.step(cell_.project_step(in, site), state_, site);
    means_.push_back(mean_(state_.h));
    log_deviations_.push_back(log_deviation_(state_.h));
    const Value deviation = ops::exp(g, log_deviations_.back());
    return ops::add(g, means_.back(), ops::mul(g, deviation, drawer.noise()));
  }

  // The sum over all glimpses.
  Value kl() const {
    Graph& g = net_.graph;
    const Value mu = nn::stack(net_, means_), s = nn::stack(net_, log_deviations_);
    const Value variance = ops::exp(g, ops::scale(g, s, 2));
    const Value squares = ops::add(g, ops::square(g, mu), variance);
    return ops::sum(g, ops::scale(g, ops::sub(g, squares, ops::scale(g, s, 2)), 0.5, -0.5));
  }

 private:
  nn::Net& net_;
  nn::Lstm cell_;
  nn::Linear attention_, mean_, log_deviation_;
  nn::LstmState state_;
  std::vector<Value> means_, log_deviations_;
};

}  // namespace

Value read_glimpse(nn::Net& net, Value p, Value x, const FilterBankAttrs& attrs) {
  Graph& g = net.graph;
  return ops::mul(g, seen(g, ops::filter_bank(g, p, attrs), x), gamma_of(g, p));
}

DrawOutputs draw_image(nn::Net& net, const DrawNetOptions& options, Value x) {
  const std::int64_t n = net.graph.shape(x)[0];
  Drawer drawer(net, options, n);
  Looker looker(net, options, n);
  DrawOutputs out;
  for (std::int64_t t = 0; t < options.sizes.glimpses; ++t) {
    drawer.draw(looker.look(drawer, x, drawer.attrs(options.sizes.read), t), t);
    out.canvases.push_back(drawer.canvas());
  }
  out.canvas = drawer.canvas();
  out.kl = looker.kl();
  return out;
}

DrawOutputs draw_samples(nn::Net& net, const DrawNetOptions& options, std::int64_t n) {
  Drawer drawer(net, options, n);
  DrawOutputs out;
  for (std::int64_t t = 0; t < options.sizes.glimpses; ++t) {
    drawer.draw(drawer.noise(), t);
    out.canvases.push_back(drawer.canvas());
  }
  out.canvas = drawer.canvas();
  return out;
}

}  // namespace keel::models
