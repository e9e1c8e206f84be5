// Walks through a step node by node on a judge and on the backends that are compared with it.
//
// Isolated: every node is fed what the judge has computed, rounded to float32, on all backends and
// on the judge, so that errors do not pile up and inputs are exactly the same.
// Chained: every backend feeds itself. A node is judged by what the judge makes of the backend's
// own inputs, so that it answers for its own roundings only; besides, its distance from the judge's
// own chain is measured: the drift. No value lives longer than until the last node that reads it.
#pragma once

#include <functional>
#include <optional>

#include "frontend/compare/fault.h"
#include "frontend/compare/foreign.h"
#include "frontend/compare/measure.h"
#include "frontend/compare/subject.h"
#include "frontend/compare/trace.h"

namespace keel::compare {

enum class WalkMode { kIsolated, kChained };
constexpr auto choice_words(WalkMode) {
  return std::to_array<std::string_view>({"isolated", "chained"});
}

// What a comparison says of a node, from the best to the worst.
enum class Verdict {
  kOk,        // within what rounding explains, and a fault of 1 % would not be
  kBlind,     // within what rounding explains, as a fault of 1 % of the values might be
  kSuspect,   // only rounding errors that are not independent explain it, or tiles of a convolution
  kUnjudged,  // nothing is known of it: reason
  kRefused,   // the backend does not run it: refusal
  kDiverges,  // further off than rounding explains
};
constexpr auto choice_words(Verdict) {
  return std::to_array<std::string_view>(
      {"ok", "blind", "suspect", "unjudged", "refused", "diverges"});
}

// The power (Errors::power) from which on a judge is blind.
inline constexpr double kBlindPower = 0.01;

// One node of one step on one backend.
struct NodeReport {
  std::int64_t step = 0;
  int node = 0;
  std::string path, op;  // op "update": the leaf called `path` takes its new value
  std::string phase;     // "forward", "backward", "clip", "optimizer" or "state"
  std::string output;    // the graph's output that this is, such as "loss", or empty
  std::string backend;
  std::string refusal;  // why the backend does not run it, or empty
  std::string place;    // of the worst element in its output: "(3, 0, 7)"
  // What every backend has at that place, by name; of an isolated walk.
  std::vector<std::pair<std::string, double>> values;
  Errors errors;                // against the judge's answer to the same inputs
  bool judged = true;           // else errors are distances, which nothing bounds
  std::string reason;           // why it is not judged, or empty
  std::string standard;         // what it is held to: "keel's promise" or "any kernel"
  std::optional<Errors> drift;  // of a chain: from the judge's chain

  bool diverges() const { return refusal.empty() && judged && !errors.within(); }
  Verdict verdict() const;
  // Sets `place` from the errors' worst element; `outputs` are those of the node.
  void place_worst(std::span<const Tensor> outputs);
};

// What a report is made of.
struct NodeTensors {
  const Graph& graph;
  std::span<const Tensor* const> inputs;
  std::span<const Tensor> expected, got;
  std::span<const Tensor> bounds;  // none of an update
};
using NodeSink = std::function<void(const NodeReport&, const NodeTensors&)>;

struct WalkOptions {
  WalkMode mode = WalkMode::kIsolated;
  std::vector<Fault> faults;
  std::string only;  // a path, or what it begins with before a '/'; empty: all
  // Isolated walks alone. What takes the walk down; it begins after the steps that this has got.
  TraceWriter* record = nullptr;
  // A walk of former times: its inputs and leaves are taken, and its backends are judged like those
  // of this one.
  TraceReader* against = nullptr;
  // What another program gave in the first step. A node is judged where all of its inputs were
  // given, too, or are leaves, or statistics that follow from what was given; else its distance
  // from the judge is measured.
  ForeignValues* foreign = nullptr;
};

class StepWalk {
 public:
  // All have to outlive it. Throws Error{kUsage} for a fault of a backend that is not there.
  StepWalk(Backend& judge, std::vector<Backend*> backends, Subject& subject, WalkOptions options);
  ~StepWalk();
  StepWalk(const StepWalk&) = delete;
  StepWalk& operator=(const StepWalk&) = delete;

  // Walks the next step. Throws Error{kUsage} when no node is called as `only` or a fault says, or
  // when a fault changes nothing.
  void run(const NodeSink& sink);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// "(3, 0, 7)": where an element is in a tensor of that shape.
std::string place_text(const Shape& shape, std::int64_t index);
// Which part of a step a node belongs to.
std::string phase_of(const Node& node);

}  // namespace keel::compare
