#include "frontend/compare/walk/step_walk.h"

#include "frontend/compare/walk/backend_trace.h"
#include "frontend/compare/walk/external_reference.h"
#include "frontend/compare/walk/fault_planter.h"
#include "frontend/compare/walk/node_reference.h"
#include "frontend/compare/walk/walk_plan.h"

namespace keel::compare {
std::string place_text(const Shape& shape, std::int64_t index) {
  std::vector<std::int64_t> place;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const std::int64_t size = std::max<std::int64_t>(shape[axis], 1);
    place.insert(place.begin(), index % size);
    index /= size;
  }
  return fmt::format("({})", fmt::join(place, ", "));
}

std::string phase_of(const Node& node) {
  if (node.name.starts_with("update/")) return "optimizer";
  if (node.name.starts_with("clip/")) return "clip";
  return node.name.find(".backward") != std::string::npos ? "backward" : "forward";
}

Verdict NodeReport::verdict() const {
  if (!refusal.empty()) return Verdict::kRefused;
  if (!compared) return Verdict::kUncompared;
  if (!errors.within()) return Verdict::kDiverges;
  if (errors.uncompared > 0) return Verdict::kUncompared;
  if (errors.of_usual > 1 || errors.scale > 1) return Verdict::kSuspect;
  return errors.sensitivity > kSensitivityLimit ? Verdict::kInsensitive : Verdict::kOk;
}

void NodeReport::place_worst(std::span<const Tensor> outputs) {
  const auto port = std::size_t(errors.worst.port);
  if (port >= outputs.size() || outputs[port].elements() == 0) return;
  place = place_text(outputs[port].shape(), errors.worst.index);
}

class StepWalk::Impl {
 public:
  Impl(Backend& reference, std::vector<Backend*> backends, Subject& subject, WalkOptions options)
      : reference_(reference),
        backends_(std::move(backends)),
        subject_(subject),
        options_(std::move(options)),
        truth_(reference, !is_chained()) {
    std::vector<std::string> names;
    for (Backend* backend : backends_) {
      names.emplace_back(backend->name());
      if (is_chained()) traces_.emplace_back(*backend, false);
    }
    planter_.emplace(options_.faults, names);
    if (options_.external) external_.emplace(reference_, *options_.external);
    check(!is_chained() || (!options_.record && !options_.against), ErrorKind::kUsage,
          "traces are of isolated walks: expected --mode isolated");
    if (options_.record && options_.record->steps() > 0) {
      step_ = options_.record->steps();
      truth_.set_leaves(options_.record->leaves());
    }
  }

  void run(const NodeSink& sink) {
    SubjectStep step = subject_.at(step_);
    graph_ = step.graph;
    sink_ = &sink;
    plan_.emplace(*graph_, WalkChoice{options_.only, external_.has_value()}, subject_.name());
    if (options_.against) replay_inputs(*options_.against, step_, step, truth_);
    truth_.begin(*graph_, step, subject_);
    if (external_ && step_ == 0) external_->begin(*graph_);
    if (options_.record) record_inputs(*options_.record, step_, step, truth_);
    for (BackendTrace& trace : traces_) trace.begin(*graph_, step, subject_);
    const PerNode<int> last = last_readers(*graph_, plan_->needed());
    for (int i = 0; i < graph_->size(); ++i) {
      if (!plan_->needed()[i] || graph_->node(i).kind != NodeKind::kOp) continue;
      take_node(i);
      truth_.release(i, last);
      for (BackendTrace& trace : traces_) trace.release(i, last);
    }
    truth_.end();
    for (BackendTrace& trace : traces_) trace.end();
    if (options_.record) options_.record->end(truth_.leaves());
    if (options_.only.empty()) planter_->expect_planted(subject_.name(), step_);
    ++step_;
  }

 private:
  bool is_chained() const { return options_.mode == WalkMode::kChained; }

  void take_node(int i) {
    const Node& node = graph_->node(i);
    const bool compared = plan_->is_compared(i) && !is_view(node);
    const std::vector<const Tensor*> inputs = truth_.inputs(node);
    NodeResult truth =
        reference_node(reference_, *graph_, i, inputs, {.wants_bounds = compared && !is_chained()});
    for (std::size_t b = 0; is_chained() && b < backends_.size(); ++b) {
      take_chained(i, b, truth, compared);
    }
    if (compared && !is_chained()) take_isolated(i, truth, inputs);
    if (options_.against) take_recorded(i, truth, inputs, compared);
    if (external_ && step_ == 0) {
      external_->take({*graph_, i, truth_, truth}, plan_->is_compared(i),
                      report_of(i, options_.external->name()), *sink_);
    }
    truth_.set(i, std::move(truth.outputs));
    if (options_.record && !is_view(node)) {
      record_outputs(*options_.record, "truth", node, truth_.outputs(i));
    }
    for (const Update& update : plan_->updates_of(i)) {
      truth_.set_next(graph_->node(update.leaf).name, truth_.value(update.next).clone());
    }
  }

  void take_isolated(int i, const NodeResult& truth, std::span<const Tensor* const> inputs) {
    std::vector<NodeRun> runs;
    for (std::size_t b = 0; b < backends_.size(); ++b) {
      NodeRun& run = runs.emplace_back(run_node(*backends_[b], *graph_, i, inputs));
      if (run.refusal.empty()) strike(i, b, inputs, run.outputs);
    }
    for (std::size_t b = 0; b < backends_.size(); ++b) {
      report({i, std::string(backends_[b]->name()), runs[b], inputs, runs}, truth, nullptr);
      if (options_.record) record_run(i, b, runs[b]);
      if (!runs[b].refusal.empty()) continue;
      for (const Update& update : plan_->updates_of(i)) {
        const Tensor& leaf = truth_.value(update.leaf);
        report_update(update, b, leaf, runs[b].outputs[std::size_t(update.next.port)]);
      }
    }
  }

  void record_run(int i, std::size_t b, const NodeRun& run) {
    check(run.refusal.empty(), ErrorKind::kBackendMissing, "--record: backend {} refuses {}: {}",
          backends_[b]->name(), graph_->node(i).name, run.refusal);
    record_outputs(*options_.record, backends_[b]->name(), graph_->node(i), run.outputs);
  }

  void take_chained(int i, std::size_t b, const NodeResult& truth, bool compared) {
    BackendTrace& trace = traces_[b];
    const std::vector<const Tensor*> inputs = trace.inputs(graph_->node(i));
    NodeRun run = run_node(*backends_[b], *graph_, i, inputs);
    check(run.refusal.empty(), ErrorKind::kBackendMissing, "backend {} refuses {}: {}",
          backends_[b]->name(), graph_->node(i).name, run.refusal);
    strike(i, b, inputs, run.outputs);
    if (compared) {
      const NodeResult own = reference_node(reference_, *graph_, i, inputs, {});
      report({i, std::string(backends_[b]->name()), run, inputs}, own, &truth);
    }
    for (const Update& update : plan_->updates_of(i)) {
      const Tensor& leaf = trace.value(update.leaf);
      const Tensor& next = run.outputs[std::size_t(update.next.port)];
      Tensor result = report_update(update, b, leaf, next);
      trace.set_next(graph_->node(update.leaf).name, std::move(result));
    }
    trace.set(i, std::move(run.outputs));
  }

  // Compares what the recorded backends gave, then hands on what the recorded reference handed on.
  void take_recorded(int i, NodeResult& truth, std::span<const Tensor* const> inputs,
                     bool compared) {
    if (is_view(graph_->node(i))) return;
    for (const std::string& name : options_.against->backends()) {
      if (!compared) continue;
      const NodeRun run{replay_outputs(*options_.against, name, graph_->node(i)), {}};
      report({i, "recorded " + name, run, inputs}, truth, nullptr);
    }
    truth.outputs = replay_outputs(*options_.against, "truth", graph_->node(i));
  }

  NodeReport report_of(int i, const std::string& backend) const {
    const Node& node = graph_->node(i);
    NodeReport report{.step = step_,
                      .node = i,
                      .path = node.name,
                      .op = std::string(node.op->name),
                      .phase = phase_of(node),
                      .output = {},
                      .backend = backend,
                      .refusal = {},
                      .place = {},
                      .values = {},
                      .errors = {},
                      .compared = true,
                      .reason = {},
                      .standard = "keel's promise",
                      .drift = {}};
    for (const NamedValue& output : graph_->outputs()) {
      if (output.value.node == i) report.output = output.name;
    }
    return report;
  }

  // The result of a backend for a node, and the inputs it was given.
  struct Given {
    int node;
    std::string backend;
    const NodeRun& run;
    std::span<const Tensor* const> inputs;
    std::span<const NodeRun> all = {};  // of all backends, in their order
  };
  // Adds the values of the other backends at the place of the worst element.
  void add_values(const Given& given, NodeReport& report) const {
    const Element& worst = report.errors.worst;
    const auto port = std::size_t(worst.port);
    if (report.place.empty()) return;
    for (std::size_t b = 0; b < given.all.size(); ++b) {
      if (!given.all[b].refusal.empty() || given.all[b].outputs[port].elements() == 0) continue;
      report.values.emplace_back(backends_[b]->name(), given.all[b].outputs[port].at(worst.index));
    }
  }
  void report(const Given& given, const NodeResult& node_result, const NodeResult* chain) {
    const NodeRun& run = given.run;
    NodeReport report = report_of(given.node, given.backend);
    report.refusal = run.refusal;
    if (run.refusal.empty()) {
      report.errors = measured(run.outputs, node_result.outputs, node_result.bounds);
      if (chain) report.drift = measured(run.outputs, chain->outputs, {});
      report.place_worst(run.outputs);
      add_values(given, report);
    }
    (*sink_)(report,
             {*graph_, given.inputs, node_result.outputs, run.outputs, node_result.bounds.largest});
  }

  // A copy is exact. Returns what the leaf has after the step.
  Tensor report_update(const Update& update, std::size_t b, const Tensor& leaf,
                       const Tensor& next) {
    const Node& node = graph_->node(update.leaf);
    std::vector<Tensor> got;
    got.push_back(committed(*backends_[b], leaf, next));
    planter_->count_non_finite({node, backends_[b]->name(), step_, {}}, got[0], leaf);
    if (!plan_->is_compared(update.next.node)) return std::move(got[0]);
    NodeReport report = report_of(update.next.node, std::string(backends_[b]->name()));
    report.path = node.name;
    report.op = "update";
    report.phase = "state";
    report.output = {};
    std::vector<Tensor> expected;
    expected.push_back(next.clone());
    NodeBounds bounds;
    bounds.largest.emplace_back(DType::kF64, next.shape());
    report.errors = measured(got, expected, bounds);
    report.place_worst(expected);
    const Tensor* const inputs[] = {&leaf, &next};
    (*sink_)(report, {*graph_, inputs, expected, got, bounds.largest});
    return std::move(got[0]);
  }

  void strike(int i, std::size_t b, std::span<const Tensor* const> inputs,
              std::vector<Tensor>& outputs) {
    planter_->strike({graph_->node(i), backends_[b]->name(), step_, inputs}, outputs);
  }

  Backend& reference_;
  std::vector<Backend*> backends_;
  Subject& subject_;
  WalkOptions options_;
  BackendTrace truth_;
  std::vector<BackendTrace> traces_;
  std::int64_t step_ = 0;
  const Graph* graph_ = nullptr;
  const NodeSink* sink_ = nullptr;
  std::optional<WalkPlan> plan_;  // of graph_
  std::optional<ExternalReference> external_;
  std::optional<FaultPlanter> planter_;
};

StepWalk::StepWalk(Backend& reference, std::vector<Backend*> backends, Subject& subject,
                   WalkOptions options)
    : impl_(std::make_unique<Impl>(reference, std::move(backends), subject, std::move(options))) {}

StepWalk::~StepWalk() = default;

void StepWalk::run(const NodeSink& sink) { impl_->run(sink); }

}  // namespace keel::compare
