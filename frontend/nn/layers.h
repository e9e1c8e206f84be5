// Linear and convolution layers, with a norm or without. Parameters are named "<name>/weight" and
// "<name>/bias", those of the norm "<name>/norm/...".
//
// A layer is an object that makes its parameters once, and the normed form of its weight; every
// application reads these. A copy is the same layer, not another one. The net must outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "frontend/nn/fan_init.h"
#include "frontend/nn/norm_layer.h"

namespace keel::nn {

struct LayerOptions {
  bool bias = true;
  FanInit weight_init = lecun_normal;
  FanInit bias_init = [](std::int64_t) { return zeros(); };
  UnitVectors unit = UnitVectors::kNone;  // of the weight, at first and after every update
  // The norm of the layer's output y or of its weight W; a norm of W also decides how W is drawn.
  std::optional<Norm> norm = std::nullopt;
};

// The factors and terms of a layer, and what comes after the product.
struct LayerParts {
  Value weight = {}, gain = {}, bias = {};  // gain, of a norm of weights, and bias may be absent
  std::optional<NormLayer> norm = {};       // of the output
  std::optional<DataDependentInit> start =
      {};                // in Mode::kDataDependentInit, of the first application
  double gain_init = 1;  // of a norm of weights
};

// y = x W + b.   x (..., in)   W (in, out)   b (out)   y (..., out)
class Linear {
 public:
  Linear(Net& net, const std::string& name, std::int64_t in, std::int64_t out,
         const LayerOptions& options = {});
  // y = x T^T + b with the rows of a table T (out, in), which is another layer's parameter, such as
  // an embedding's; its gradient is the sum over all uses. Throws Error{kUsage} for a table of
  // another rank, and for a norm that acts on the weight.
  static Linear sharing(Net& net, const std::string& name, Value table,
                        const LayerOptions& options = {});

  // `call` is passed to the norm.
  Value operator()(Value x, const LayerCall& call = {}) const;
  // The rest of the layer, bias and norm, for a product x W that the caller has computed.
  Value after_product(Value product, const LayerCall& call = {}) const;
  // W as the product takes it, after a norm of weights.
  Value weight() const { return parts_->weight; }

 private:
  Linear(Net& net, const std::string& name, bool transposes)
      : net_(&net), name_(name), transposes_(transposes) {}

  Net* net_;
  std::string name_;
  bool transposes_;
  std::shared_ptr<LayerParts> parts_;
};

struct ConvLayer {
  std::int64_t channels, window;
  std::int64_t stride = 1, padding = 0;
};
// x (n, c, h, w)   weight (channels, c, window, window)   bias (channels)
class Conv2d {
 public:
  Conv2d(Net& net, const std::string& name, std::int64_t in_channels, const ConvLayer& layer,
         const LayerOptions& options = {});
  // `call` is passed to the norm.
  Value operator()(Value x, const LayerCall& call = {}) const;

 private:
  Net* net_;
  std::string name_;
  ConvLayer layer_;
  std::shared_ptr<LayerParts> parts_;
};

// Layers that are applied once: make a Linear or Conv2d for the features of x, and apply it to x.
Value linear(Net& net, const std::string& name, Value x, std::int64_t out,
             const LayerOptions& options = {});
Value conv2d(Net& net, const std::string& name, Value x, const ConvLayer& layer,
             const LayerOptions& options = {});

// y = dropout(x) in training.
Value dropout(Net& net, Value x, double p);

}  // namespace keel::nn
