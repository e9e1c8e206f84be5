// The values that a norm of a network remembers from one application to the next while the graph is
// built. The class is internal to NormLayer and the norm_*.cpp files.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "frontend/nn/net.h"
#include "src/graph/attrs.h"
#include "src/ops/norm/norm.h"

namespace keel::nn {

// The time steps that have states of their own.
struct StepStates {
  std::int64_t count = 100;  // how many steps have some
  bool names_first =
      false;  // whether step 0 too has "t0/" in its names and a count of its trainings
};

// The gain and the bias of a norm, each if it is asked for, and their first values. Options of a
// norm that has them derive from this.
struct AffineOptions {
  bool gain = true, bias = true;
  double gain_init = 1, bias_init = 0;

  static constexpr auto first_values() {
    using T = AffineOptions;
    return std::tuple{field("gain_init", &T::gain_init), field("bias_init", &T::bias_init)};
  }
  bool has_bias() const { return bias; }
};

class NormStates {
 public:
  Net& net;
  Graph& graph;

  // The names of parameters and states begin with `path`, such as "fc1/norm/".
  NormStates(Net& net, std::string path, const StepStates& steps);

  // Every application, at time step t, calls begin() before and finish() after what the norm does.
  void begin(std::int64_t t);
  void finish(Value mask);

  // Makes a parameter that does not decay, or returns it if an application before has made it.
  Value parameter(const std::string& name, const Shape& shape, Initializer initializer);
  // The gain and the bias of that shape. Where Net::gain_deviation is not 0, the gain begins around
  // gain_init.
  ops::NormAffine affine(const Shape& shape, const AffineOptions& options);
  // A running statistic of the time step, with the value that this application finds.
  Value state(const std::string& name, const Shape& shape, double initial,
              const std::optional<Bounds>& bounds = {});
  // A counter of training steps, which starts at 0. An evaluation has no use for it.
  Value counter(const std::string& name);
  // Says which value the application gives to a state that it has read. The value persists unless
  // the net is a probe.
  void update(Value read, Value next);

 private:
  using Key = std::pair<std::string, std::int64_t>;  // a name, and a time step
  struct State {
    Value leaf;
    Value now;         // the value in training after the applications so far
    Value population;  // the value in an evaluation, once it is known
  };

  bool is_counted(std::int64_t k) const { return k > 0 || steps_.names_first; }
  std::string path_of(std::int64_t k) const;
  Value read(const Key& key, const TensorType& type, Initializer initializer,
             const std::optional<Bounds>& bounds);
  Value seen(std::int64_t k);
  Value population(const Key& key, Value before);

  std::string path_;
  StepStates steps_;
  std::int64_t t_ = 0,
               k_ = 0;       // the time step of the application, and the one whose states it reads
  bool has_states_ = false;  // whether the application has read a state
  std::map<std::string, Value> parameters_;
  std::map<Key, State> states_;
};

}  // namespace keel::nn
