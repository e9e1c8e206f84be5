// The loss of a batch and its gradient at any weights, in training mode and without a change to
// persistent values; and how both vary along the gradient.
#pragma once

#include <functional>

#include "frontend/train/observer.h"
#include "studies/study.h"

namespace keel::study {

// All trained parameters as one vector, in the order of the network.
using Weights = std::vector<double>;

struct Slope {
  double loss = 0;
  Weights gradient;
};

// The weights of one layer. The first part of a parameter's name names the layer.
struct LayerWeights {
  std::string name;
  std::size_t begin = 0, end = 0;  // of Weights
};

class GradientProbe {
 public:
  // Both arguments must outlive the object.
  GradientProbe(Backend& backend, const train::Job& job);

  // Later calls are of the batch of this update, which must have one, with the update's random
  // numbers. Takes over the training's states, which norms read that divide by running statistics,
  // and its carries.
  void take(const train::ObservedUpdate& update);
  Slope at(const Weights& weights);
  // The values of a training's variables.
  Weights read(const Variables& variables) const;
  const std::vector<LayerWeights>& layers() const { return layers_; }

 private:
  struct Part {
    std::string name;
    Shape shape;
  };
  Graph build(const task::Sizes& sizes);

  Backend& backend_;
  const train::Job& job_;
  train::Feeder feeder_;
  Variables variables_;
  Carries carries_;
  ProgramCache programs_;
  std::vector<Part> parts_;
  std::vector<std::string> states_;
  std::vector<LayerWeights> layers_;
  task::Batch batch_;
  std::int64_t step_ = 0;
};

// The loss along its gradient g at theta, at K = 10 steps eta in a geometric series from rate / 2
// to 4 rate (Santurkar et al. 2018, figure 4):
//   loss       L(theta - eta g)
//   gradient   |g - g(theta - eta g)|, how far the gradient turns out from what it promised
//   beta       the largest |g - g(theta - eta g)| / (eta |g|), the effective smoothness
//   lipschitz  the largest |L(theta - eta g) - L(theta)| / (eta |g|)
struct Landscape {
  double loss_min = 0, loss_max = 0, gradient_min = 0, gradient_max = 0, beta = 0, lipschitz = 0;
};
using SlopeAt = std::function<Slope(const Weights& theta)>;
Landscape landscape_along(const SlopeAt& slope_at, const Weights& theta, double rate);

}  // namespace keel::study
