// Walks through a step node by node, on a reference and on the backends that are compared with it.
//
// Isolated: on all backends and on the reference, every node gets the reference's values, rounded
// to float32, so that errors do not pile up and inputs are exactly the same. Chained: every backend
// feeds itself. A node is compared with the reference's result for the backend's own inputs, so
// that only its own roundings count. The distance from the reference's own chain, the drift, is
// also measured. No value lives longer than until the last node that reads it.
#pragma once

#include <functional>
#include <optional>

#include "frontend/compare/bounds/measure.h"
#include "frontend/compare/walk/external.h"
#include "frontend/compare/walk/fault.h"
#include "frontend/compare/walk/subject.h"
#include "frontend/compare/walk/trace.h"

namespace keel::compare {

enum class WalkMode { kIsolated, kChained };
constexpr auto choice_words(WalkMode) {
  return std::to_array<std::string_view>({"isolated", "chained"});
}

// The verdict on a node, from the best to the worst.
enum class Verdict {
  kOk,           // rounding explains it, and would not explain a fault of 1 %
  kInsensitive,  // rounding explains it, and might explain a fault of 1 % of the values
  kSuspect,  // only rounding errors that are not independent explain it, or tiles of a convolution
  kUncompared,  // nothing is known of it; NodeReport::reason says why
  kRefused,     // the backend does not run it; NodeReport::refusal says why
  kDiverges,    // it is further off than rounding explains
};
constexpr auto choice_words(Verdict) {
  return std::to_array<std::string_view>(
      {"ok", "insensitive", "suspect", "uncompared", "refused", "diverges"});
}

// With this Errors::sensitivity or more a comparison is insensitive.
inline constexpr double kSensitivityLimit = 0.01;

// One node of one step on one backend.
struct NodeReport {
  std::int64_t step = 0;
  int node = 0;
  std::string path, op;  // op "update": the leaf called `path` takes its new value
  std::string phase;     // "forward", "backward", "clip", "optimizer" or "state"
  std::string output;    // its name as an output of the graph, such as "loss", or empty
  std::string backend;
  std::string refusal;  // why the backend does not run it, or empty
  std::string place;    // of the worst element in its tensor: "(3, 0, 7)"
  // The values of every backend at that place, by name; in isolated walks only.
  std::vector<std::pair<std::string, double>> values;
  Errors errors;                // against the reference's result for the same inputs
  bool compared = true;         // false: errors are distances without a bound
  std::string reason;           // why it is not compared, or empty
  std::string standard;         // the promise that it has to keep: "keel's promise" or "any kernel"
  std::optional<Errors> drift;  // in a chain: the distance from the reference's chain

  bool diverges() const { return refusal.empty() && compared && !errors.within(); }
  Verdict verdict() const;
  // Sets `place` from the errors' worst element; `outputs` are the node's.
  void place_worst(std::span<const Tensor> outputs);
};

// The tensors that a report is made from.
struct NodeTensors {
  const Graph& graph;
  std::span<const Tensor* const> inputs;
  std::span<const Tensor> expected, got;
  std::span<const Tensor> bounds;  // none for an update
};
using NodeSink = std::function<void(const NodeReport&, const NodeTensors&)>;

struct WalkOptions {
  WalkMode mode = WalkMode::kIsolated;
  std::vector<Fault> faults;
  std::string only;  // a path, or its beginning before a '/'; empty: all
  // For isolated walks only. Records the walk, which begins after the steps that it has already.
  TraceWriter* record = nullptr;
  // A recorded walk: this walk takes its inputs and leaves, and compares the recorded backends like
  // its own.
  TraceReader* against = nullptr;
  // Arrays that another program gave for the first step. A node is compared if each of its inputs
  // was given too, or is a leaf, or is a statistic that follows from given arrays. Otherwise its
  // distance from the reference is measured.
  ExternalValues* external = nullptr;
};

class StepWalk {
 public:
  // All have to outlive it. Throws Error{kUsage} for a fault of a backend that does not exist.
  StepWalk(Backend& reference, std::vector<Backend*> backends, Subject& subject,
           WalkOptions options);
  ~StepWalk();
  StepWalk(const StepWalk&) = delete;
  StepWalk& operator=(const StepWalk&) = delete;

  // Walks the next step. Throws Error{kUsage} when no node has the name `only` or that of a fault,
  // or when a fault changes nothing.
  void run(const NodeSink& sink);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// "(3, 0, 7)": the place of an element in a tensor of that shape.
std::string place_text(const Shape& shape, std::int64_t index);
// The phase of a step that a node belongs to.
std::string phase_of(const Node& node);

}  // namespace keel::compare
