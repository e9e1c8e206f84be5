#include "frontend/compare/comparison.h"

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
    const bool worse = report.errors.of_bound > summary.worst.errors.of_bound;
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

std::string number(double v) { return fmt::format("{:.3g}", v); }

}  // namespace

std::int64_t Comparison::refused() const {
  return std::ranges::count_if(nodes,
                               [](const NodeSummary& s) { return !s.worst.refusal.empty(); });
}

std::int64_t Comparison::diverged() const {
  return std::ranges::count_if(nodes, [](const NodeSummary& s) { return s.diverged > 0; });
}

std::vector<const NodeSummary*> Comparison::ranked() const {
  std::vector<const NodeSummary*> result;
  for (const NodeSummary& s : nodes) result.push_back(&s);
  std::ranges::stable_sort(result, [](const NodeSummary* a, const NodeSummary* b) {
    return a->worst.errors.of_bound > b->worst.errors.of_bound;
  });
  return result;
}

Comparison compare(Backend& judge, const std::vector<Backend*>& backends, Subject& subject,
                   const CompareOptions& options) {
  Comparison comparison{.subject = subject.name(), .nodes = {}, .first = {}, .nearest = {}};
  Collector collector(comparison);
  StepWalk walk(judge, backends, subject, options.walk);
  for (std::int64_t step = 0; step < options.steps; ++step) {
    walk.run([&](const NodeReport& report, const NodeTensors& tensors) {
      collector.take(report);
      if (options.sink) options.sink(report, tensors);
    });
  }
  collector.end();
  return comparison;
}

std::vector<std::string> summary_heading() {
  return {"",     "backend",    "of bound", "max abs", "max rel", "max ulp",
          "nmse", "cosine - 1", "drift",    "op",      "node"};
}

std::vector<std::string> summary_row(const NodeSummary& s) {
  const NodeReport& r = s.worst;
  const std::string name = r.output.empty() ? r.path : fmt::format("{} ({})", r.path, r.output);
  if (!r.refusal.empty()) {
    return {"refused",
            r.backend,
            "-",
            "-",
            "-",
            "-",
            "-",
            "-",
            "-",
            r.op,
            fmt::format("{}: {}", name, r.refusal)};
  }
  const Errors& e = r.errors;
  return {s.diverged > 0 ? "DIVERGES"
          : r.judged     ? "ok"
                         : "-",
          r.backend,
          number(e.of_bound),
          number(e.absolute),
          number(e.relative),
          number(e.ulps),
          number(e.nmse),
          number(e.cosine - 1),
          r.drift ? number(r.drift->nmse) : "-",
          r.op,
          name};
}

}  // namespace keel::compare
