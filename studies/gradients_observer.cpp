#include "studies/gradients_observer.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "frontend/train/update_probe.h"
#include "src/ops/elementwise.h"
#include "src/ops/norm/norm.h"
#include "src/ops/norm/norm_ops.h"
#include "src/ops/reduce.h"
#include "studies/observed_norms.h"
#include "studies/summary.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

// The place of dy among the inputs of a norm's backward; none of a norm of weights.
std::optional<std::size_t> place_of_dy(const Graph& g, const ObservedNorm& site) {
  const auto& inputs = g.node(site.backward).op->inputs;
  const auto dy = std::ranges::find(inputs, "dy", &OpInput::name);
  if (dy == inputs.end()) return std::nullopt;
  return std::size_t(dy - inputs.begin());
}

// Every norm of activations that the loss depends on, in the order of the network.
std::vector<ObservedNorm> differentiated_norms(const Graph& g) {
  std::vector<ObservedNorm> all;
  for (const OpInfo* op : norm_ops()) {
    for (const ObservedNorm& site : observed_norms(g, *op)) {
      if (site.backward >= 0 && place_of_dy(g, site)) all.push_back(site);
    }
  }
  std::ranges::sort(all, {}, &ObservedNorm::forward);
  return all;
}

void mark_lengths(Graph& g) {
  for (const ObservedNorm& site : differentiated_norms(g)) {
    const Value dy = g.node(site.backward).inputs[*place_of_dy(g, site)],
                dx{site.backward, NormGradient::kDx};
    for (const auto& [what, value] : {std::pair{"|dy|", dy}, {"|dx|", dx}}) {
      mark(g, site, what, ops::sqrt(g, ops::sum(g, ops::square(g, value))));
    }
  }
}

class GradientsObserver final : public train::Observer {
 public:
  GradientsObserver(std::vector<ObservedNorm> sites, const ObserverOptions& options)
      : sites_(std::move(sites)), options_(options) {}

  std::string name() const override { return "gradients"; }
  bool looks_at(const train::ObservedUpdate& update) const override {
    return options_.fall_on(update);
  }

  void before(const train::ObservedUpdate& update) override {
    if (!probe_) {
      probe_ = std::make_unique<train::UpdateProbe>(
          update, train::UpdateProbe::Outputs{.mark = mark_lengths});
    }
    const Program* program = probe_->run(update);
    if (program == nullptr) return;
    nlohmann::ordered_json norms = nlohmann::ordered_json::object();
    for (const ObservedNorm& site : sites_) {
      norms[site.name] = {{"dy", program->scalar(site.name + "/|dy|")},
                          {"dx", program->scalar(site.name + "/|dx|")}};
    }
    write(update, {{"epoch", update.epoch()}, {"norms", std::move(norms)}});
  }

 private:
  std::vector<ObservedNorm> sites_;
  ObserverOptions options_;
  std::unique_ptr<train::UpdateProbe> probe_;
};

}  // namespace

std::unique_ptr<train::Observer> gradients_observer(const train::Job& job,
                                                    const ObserverOptions& options) {
  expect_whole_statistics(job, "gradients");
  std::vector<ObservedNorm> sites =
      differentiated_norms(train::build_probe(job, job.network().sizes(job.train().batch), {}));
  check(!sites.empty(), ErrorKind::kUsage,
        "train.observe: gradients: expected a network with a norm of activations, got none");
  return std::make_unique<GradientsObserver>(std::move(sites), options);
}

Table gradients_table(const std::string& run, const std::vector<nlohmann::ordered_json>& lines) {
  Table table{run + ": |dx| / |dy| at every norm while it trained",
              {{"site", "updates", "median", "largest", "share <= 1"}}};
  std::map<std::string, std::vector<double>> by_site;
  std::vector<std::string> order;
  for (const auto& line : lines) {
    for (const auto& [site, lengths] : line.at("norms").items()) {
      if (!by_site.contains(site)) order.push_back(site);
      std::vector<double>& ratios = by_site[site];
      const auto &dx = lengths.at("dx"), &dy = lengths.at("dy");
      const bool are_there = dx.is_number() && dy.is_number() && dy.get<double>() > 0;
      if (are_there) ratios.push_back(dx.get<double>() / dy.get<double>());
    }
  }
  for (const std::string& site : order) {
    const std::vector<double>& ratios = by_site[site];
    if (ratios.empty()) continue;
    table.rows.push_back({site, fmt::format("{}", ratios.size()),
                          fmt::format("{:.4g}", quantile(ratios, 0.5)),
                          fmt::format("{:.4g}", std::ranges::max(ratios)),
                          fmt::format("{:.3f}", share_at_most_one(ratios))});
  }
  return table;
}

}  // namespace keel::study
