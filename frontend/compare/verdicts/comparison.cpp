#include "frontend/compare/verdicts/comparison.h"

#include <algorithm>

namespace keel::compare {
namespace {

class Collector {
 public:
  explicit Collector(Comparison& comparison) : comparison_(comparison) {}

  void take(const NodeReport& report) {
    NodeSummary& summary = summary_of(report);
    ++summary.steps;
    if (report.diverges()) {
      ++summary.diverged;
      if (!comparison_.first) comparison_.first = report;
    }
    const Verdict now = report.verdict(), before = summary.worst.verdict();
    const bool worse =
        now > before || (now == before && report.errors.of_bound > summary.worst.errors.of_bound);
    if (summary.steps == 1 || worse) summary.worst = report;
    take_nearest(report);
  }
  void end() { count_nearest(); }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;

  NodeSummary& summary_of(const NodeReport& report) {
    const auto [place, is_new] =
        places_.try_emplace({report.path, report.op, report.backend}, comparison_.nodes.size());
    if (is_new) comparison_.nodes.push_back({report});
    return comparison_.nodes[place->second];
  }

  // Reports of one node on all backends follow each other.
  void take_nearest(const NodeReport& report) {
    if (report.op == "update" || !report.refusal.empty()) return;
    if (report.node != node_ || report.step != step_) count_nearest();
    node_ = report.node;
    step_ = report.step;
    candidates_.emplace_back(report.errors.nmse, report.backend);
  }
  void count_nearest() {
    for (const auto& [nmse, backend] : candidates_) {
      const bool least = std::ranges::all_of(
          candidates_, [nmse = nmse](const auto& other) { return nmse <= other.first; });
      if (least && candidates_.size() > 1) ++comparison_.nearest[backend];
    }
    candidates_.clear();
  }

  Comparison& comparison_;
  std::map<Key, std::size_t> places_;
  int node_ = -1;
  std::int64_t step_ = -1;
  std::vector<std::pair<double, std::string>> candidates_;
};

}  // namespace

std::int64_t Comparison::count(Verdict verdict) const {
  return std::ranges::count(nodes, verdict, &NodeSummary::verdict);
}

bool Comparison::complete() const {
  return count(Verdict::kUncompared) + count(Verdict::kRefused) + count(Verdict::kSuspect) == 0;
}

std::string reservation(const NodeSummary& s) {
  const NodeReport& r = s.worst;
  switch (s.verdict()) {
    case Verdict::kInsensitive:
      return fmt::format("too small to tell: rounding may add {:.1g} of the values",
                         r.errors.sensitivity);
    case Verdict::kSuspect:
      return r.errors.scale > 1 ? "off by a common factor, which independent roundings do not make"
                                : "independent roundings do not explain it";
    case Verdict::kUncompared:
      return r.compared ? fmt::format("{} elements, of which no finite bound is known",
                                      r.errors.uncompared)
                        : r.reason;
    case Verdict::kRefused:
      return r.refusal;
    default:
      return "";
  }
}

std::vector<const NodeSummary*> Comparison::ranked() const {
  std::vector<const NodeSummary*> result;
  for (const NodeSummary& s : nodes) result.push_back(&s);
  std::ranges::stable_sort(result, [](const NodeSummary* a, const NodeSummary* b) {
    return a->worst.errors.of_bound > b->worst.errors.of_bound;
  });
  return result;
}

Comparison compare(Backend& reference, const std::vector<Backend*>& backends, Subject& subject,
                   const CompareOptions& options) {
  Comparison comparison{.subject = subject.name(), .nodes = {}, .first = {}, .nearest = {}};
  Collector collector(comparison);
  StepWalk walk(reference, backends, subject, options.walk);
  for (std::int64_t step = 0; step < options.steps; ++step) {
    walk.run([&](const NodeReport& report, const NodeTensors& tensors) {
      collector.take(report);
      if (options.sink) options.sink(report, tensors);
    });
  }
  collector.end();
  return comparison;
}

}  // namespace keel::compare
