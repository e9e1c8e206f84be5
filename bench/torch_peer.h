// PyTorch in a child process, computing and timing what a benchmark of ours does.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/child_process.h"
#include "bench/timing.h"
#include "frontend/nn/norm.h"
#include "src/core/tensor.h"

namespace keel::bench {

// What PyTorch is to compute, from the same numbers as ours.
struct TorchCase {
  struct Given {
    std::string name;
    Tensor value;  // f32 or i32
    bool is_parameter = false;
  };
  // Elements of a result of ours (see probe).
  struct Expected {
    std::string name;
    std::vector<double> elements;
  };

  nlohmann::json what;  // "norm", or "model" and more: see bench/peer
  std::vector<Given> given;
  std::vector<Expected> expected;
};

// At most 16 elements, evenly spaced.
std::vector<double> probe(const Tensor& value);

// Name, options and kind of a norm, as bench/peer takes them.
nlohmann::json norm_facts(const nn::Norm& norm);

class TorchPeer {
 public:
  // Starts KEEL_PYTHON, or python3 from the PATH, with the script of bench/peer for device "cpu" or
  // "cuda" and so many threads (0: all). Null, and the reason in `missing`, without Python or
  // PyTorch. Throws Error{kIo} when it ends without a word, Error{kBadInput} for a strange one.
  static std::unique_ptr<TorchPeer> start(const std::string& device, int threads,
                                          std::string& missing);

  const std::string& version() const { return version_; }

  // Makes the case the current one and returns "", or why there is none: PyTorch refuses, or
  // computes something else, by more than 1e-3 of a result's largest element. Throws like start().
  std::string set_up(const TorchCase& task);

  // Times the bodies of the current case: 2 of a norm, forward, and forward with backward; 1 of a
  // model, its step. A sample is the mean over `repeats`.
  Samples sample(int bodies, int rounds, int repeats);

 private:
  explicit TorchPeer(const std::vector<std::string>& command) : child_(command) {}
  nlohmann::json answer();

  ChildProcess child_;
  std::string version_;
};

}  // namespace keel::bench
