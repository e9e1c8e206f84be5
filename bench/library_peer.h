// Another library in a child process, which computes and times the same work as a benchmark of
// ours.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/child_process.h"
#include "bench/timing.h"
#include "frontend/nn/norm.h"
#include "src/core/tensor.h"

namespace keel::bench {

// The work for the library, from the same numbers as ours.
struct PeerCase {
  struct Given {
    std::string name;
    Tensor value;  // f32, i32 or u8
    bool is_parameter = false;
  };
  // Some elements of a result of ours (see probe).
  struct Expected {
    std::string name;
    std::vector<double> elements;
  };

  nlohmann::json what;  // "norm", or "model" and more: see bench/peer
  std::vector<Given> given;
  std::vector<Expected> expected;
  bool is_narrow = false;  // ours has bf16 factors
};

// At most 16 elements, evenly spaced.
std::vector<double> probe(const Tensor& value);

// Name, options and kind of a norm, as bench/peer takes them.
nlohmann::json norm_facts(const nn::Norm& norm);

// A mode in which the library runs a case: see bench/peer/serve.py.
struct PeerMode {
  std::string name;
  std::string refusal = {};  // why the library does not take the case; then it has no times
  std::vector<Timing> bodies = {};
};

// Our times, and those of the library's modes that compute the same.
struct PeerTimes {
  Timing ours;  // of the last body of a mode
  std::vector<PeerMode> modes;

  const PeerMode& fastest() const;
  // The time of the library's fastest mode divided by ours.
  double ratio() const { return fastest().bodies.back().median / ours.median; }
  // The ratio with the times that it is made of; `title` is the library's.
  std::string text(std::string_view title) const;
};

// "MODE: REASON; ..." of those that refuse; of a single mode only its reason.
std::string refusals_of(const std::vector<PeerMode>& modes);

// The name of a library in texts: "PyTorch" of "torch", "JAX" of "jax".
std::string_view title_of(std::string_view library);

struct PeerOptions {
  std::string library = "torch";  // or "jax", on the cpu only
  std::string device = "cpu";     // or "cuda"
  int threads = 0;                // 0: all
  bool tf32 = false;              // for products and convolutions on cuda
  std::vector<std::string> modes = {"usual"};
  bool under_load = false;  // all is to be timed beside a Load, too
};

class LibraryPeer {
 public:
  // Starts KEEL_PYTHON, or python3 from the PATH, with the script of bench/peer. Null, with the
  // reason in `missing`, without Python or the library. Throws Error{kIo} if the script ends
  // without an answer, Error{kBadInput} for an unexpected one.
  static std::unique_ptr<LibraryPeer> start(const PeerOptions& options, std::string& missing);

  // "PyTorch 2.4.1"
  std::string text() const;
  const PeerOptions& options() const { return options_; }
  const std::string& version() const { return version_; }

  // Makes the case the current one in every mode that can run it. The others get a refusal: the
  // library does not have the mode, or its results differ by more than 1e-3 of a result's largest
  // element (3e-2 where either side has bf16 factors).
  // Throws like start().
  std::vector<PeerMode> set_up(const PeerCase& task);

  // Whether the current case has any mode left.
  bool has_modes() const { return !usable_.empty(); }

  // Times the bodies of the current case, one usable mode after the other: 2 of a norm
  // (forward; forward with backward), 1 of a model, its step. A sample is the mean over
  // `repeats`.
  Samples sample(int bodies, int rounds, int repeats);

  // For each usable mode, the most bytes that the last body of the current case has in use at once
  // beyond those in use before it: memory of the process, or on cuda of the device.
  std::vector<double> peak_bytes();

 private:
  LibraryPeer(const std::vector<std::string>& command, const PeerOptions& options)
      : child_(command), options_(options) {}
  nlohmann::json answer();

  ChildProcess child_;
  PeerOptions options_;
  std::string version_;
  std::vector<std::string> usable_;  // modes of the current case
};

// Ours, and the modes with their times in the order of sample().
PeerTimes peer_times(std::vector<PeerMode> modes, const Timing& ours,
                     std::span<const Timing> theirs);

// The same, measured by the two samplers in turns beside a Load of as many processes as the peer
// has threads. Nothing where the peer's options do not want it.
std::optional<PeerTimes> peer_times_under_load(const LibraryPeer& peer,
                                                const std::vector<PeerMode>& modes,
                                                std::span<const Sampler> ours_and_theirs,
                                                int rounds);

}  // namespace keel::bench
