#include "frontend/train/first_values.h"

#include <algorithm>
#include <cmath>

#include "frontend/train/step_graph.h"

namespace keel::train {

FirstValue first_value_left(const Job& job, std::int64_t updates) {
  const Graph graph = build_step(job);
  // Micro-batches of shards move the statistics once an update, and so do those that share them.
  const bool counts_micro_batches =
      job.train().shards == 1 && job.train().statistics == ShardStatistics::kLocal;
  const auto batches = double(updates * (counts_micro_batches ? job.train().accumulate : 1));
  FirstValue most;
  for (int i = 0; i < graph.size(); ++i) {
    const auto keep = kept_by_batch(graph.node(i));
    if (!keep || (!most.norm.empty() && *keep <= most.keep)) continue;
    most = {graph.node(i).name, *keep, std::pow(*keep, batches)};
  }
  return most;
}

std::string first_value_warning(const Job& job, std::int64_t updates) {
  const FirstValue most = first_value_left(job, updates);
  if (most.share <= 0.05 || most.keep == 1) return "";  // with 1 the recipe asks for them
  const double needed = std::ceil(std::log(0.05) / std::log(most.keep));
  return fmt::format(
      "{}: after {} updates its running statistics still hold {:.0f} % of their first values (each "
      "batch leaves {:.4g} of them, so that {:.0f} batches would leave 5 %); evaluation normalizes "
      "by them. Train longer, let it keep less, or see keel eval --statistics pass",
      most.norm, updates, 100 * most.share, most.keep, needed);
}

}  // namespace keel::train
