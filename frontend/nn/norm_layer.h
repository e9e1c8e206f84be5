// A norm at one place of a network, which may be applied there many times.
#pragma once

#include <memory>
#include <string>

#include "frontend/nn/layer_call.h"
#include "frontend/nn/norm.h"

namespace keel::nn {

// Its parameters, "<name>/gain" and "<name>/bias", are made at the first application, and all
// applications share them. Its statistics are kept for every time step t: in states
// "<name>/<statistic>" for t = 0 and "<name>/t<t>/<statistic>" for the others, which also have
// "<name>/t<t>/seen" (), the number of times that the step was trained. A norm that names its first
// step calls the states of t = 0 "<name>/t0/..." too. An evaluation takes the statistics of step t
// or, if that was never trained, of the last trained step before it. Steps from Norm::steps() on
// read the statistics of the last step that has any, and their forwards write none.
//
// Applications at one time step pass the states on: each reads what the one before left, and the
// values of the last one are kept. States that a backward changes, such as the nu of PowerNorm, are
// passed on in the order in which backwards run, from the last application to the first.
//
// A copy is the same norm, not another one. The net must outlive the norm.
class NormLayer {
 public:
  // Throws Error{kUsage} for a norm that acts on the weight of the layer before it: that layer
  // takes it as LayerOptions::norm.
  NormLayer(Net& net, const std::string& name, const Norm& norm);
  // Makes the part of a layer's norm that acts on the layer's output. The weight has been through
  // Norm::parametrized, the other part.
  static NormLayer behind_weight(Net& net, const std::string& name, const Norm& norm);

  // Normalizes x (..., features), or images (n, c, h, w); y is like x. Throws Error{kUsage} for t <
  // 0, and for a mask of another shape if the norm takes one.
  Value operator()(Value x, const LayerCall& call = {}) const;

 private:
  struct Unchecked {};
  NormLayer(Unchecked, Net& net, const std::string& name, const Norm& norm);

  std::string name_;
  Norm norm_;
  std::shared_ptr<NormStates> memory_;
};

}  // namespace keel::nn
