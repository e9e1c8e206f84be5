// What a norm of a network has from one application to the next while the graph is built. Internal
// to NormSite and the norm_*.cpp files.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "frontend/nn/net.h"
#include "src/ops/norm/norm.h"

namespace keel::nn {

// How the states of time steps are kept.
struct StepStates {
  std::int64_t count = 100;  // how many steps have states
  bool names_first = false;  // whether step 0 is called "t0/" and counted like the others
};

class NormMemory {
 public:
  Net& net;
  Graph& graph;

  // `path`: what the names of parameters and states begin with, "fc1/norm/".
  NormMemory(Net& net, std::string path, const StepStates& steps);

  // An application at time step t: begin, what the norm does, finish.
  void begin(std::int64_t t);
  void finish(Value mask);

  // A parameter that does not decay.
  Value parameter(const std::string& name, const Shape& shape, Initializer initializer);
  // gain (all gain_init) and bias (zeros) of that shape, as asked for.
  ops::NormAffine affine(const Shape& shape, bool gain, bool bias, double gain_init = 1);
  // A running statistic of the time step as this application finds it.
  Value state(const std::string& name, const Shape& shape, double initial,
              const std::optional<Bounds>& bounds = {});
  // A counter of training steps; 0 at first. An evaluation has no use for it.
  Value counter(const std::string& name);
  // What the application makes of a state that it has read. It persists unless this is a probe.
  void update(Value read, Value next);

 private:
  using Key = std::pair<std::string, std::int64_t>;  // a name, and a time step
  struct State {
    Value leaf;
    Value now;         // in training, behind the applications so far
    Value population;  // in an evaluation, if it is known yet
  };

  bool is_counted(std::int64_t k) const { return k > 0 || steps_.names_first; }
  std::string path_of(std::int64_t k) const;
  Value read(const Key& key, const TensorType& type, Initializer initializer,
             const std::optional<Bounds>& bounds);
  Value seen(std::int64_t k);
  Value population(const Key& key, Value before);

  std::string path_;
  StepStates steps_;
  std::int64_t t_ = 0, k_ = 0;  // of the application; k is the step whose states it reads
  bool has_states_ = false;     // whether the application has read some
  std::map<std::string, Value> parameters_;
  std::map<Key, State> states_;
};

}  // namespace keel::nn
