#include "studies/statistics_observer.h"

#include <algorithm>
#include <cmath>

#include "frontend/train/step_graph.h"
#include "frontend/train/update_probe.h"
#include "src/core/nearest.h"
#include "studies/summary.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr const char* kWhere = "train.observe: statistics: model.norm";

// The norm that is asked for, in a graph of the network.
ObservedNorm site_in(const Graph& g, const WatchedNorm& norm, const std::string& asked) {
  const std::vector<ObservedNorm> sites = observed_norms(g, *norm.op);
  std::vector<std::string> names;
  for (const ObservedNorm& site : sites) names.push_back(site.name);
  check(!sites.empty(), ErrorKind::kUsage,
        "train.observe: statistics: expected a network with a norm, got none");
  const auto found =
      asked.empty() ? sites.begin() : std::ranges::find(sites, asked, &ObservedNorm::name);
  check(found != sites.end(), ErrorKind::kUsage, "train.observe: statistics: site: {}",
        unknown_name(asked, names));
  return *found;
}

Tensor ones(const Shape& shape) {
  Tensor all(DType::kF64, shape);
  std::ranges::fill(all.as<double>(), 1.0);
  return all;
}

class StatisticsObserver final : public train::Observer {
 public:
  StatisticsObserver(const std::string& norm, std::string site, ObserverOptions options)
      : norm_name_(norm),
        norm_(watched_norm(norm, kWhere)),
        site_(std::move(site)),
        options_(std::move(options)) {}

  std::string name() const override { return "statistics"; }
  bool looks_at(const train::ObservedUpdate& update) const override {
    return options_.fall_on(update);
  }

  void before(const train::ObservedUpdate& update) override {
    if (!probe_) {
      probe_ = std::make_unique<train::UpdateProbe>(
          update, train::UpdateProbe::Outputs{.mark = [this](Graph& g) {
            mark_values(g, site_in(g, norm_, site_), norm_);
          }});
    }
    const NormBefore before = read(update.variables);
    const Program* program = probe_->run(update);
    if (program == nullptr) return;
    const BatchStatistics found =
        batch_statistics(values_at(*program, {.name = site_}), before, norm_);
    nlohmann::ordered_json values{{"epoch", update.epoch()}, {"site", site_}};
    for (const StatisticsName& what : kStatisticsNames) {
      if (what.is_there(norm_name_)) values[what.name] = found.*what.field;
    }
    write(update, values);
  }

 private:
  NormBefore read(const Variables& variables) const {
    const auto leaf = [&](const char* name) {
      return variables.read(site_ + "/" + name, true).to(DType::kF64);
    };
    NormBefore before;
    if (norm_.is_centred) before.mean = leaf("running_mean");
    before.square = leaf(norm_.square);
    const bool has_gain = variables.all().contains(site_ + "/gain");
    before.gain = has_gain ? leaf("gain") : ones(before.square.shape());
    return before;
  }

  std::string norm_name_;
  WatchedNorm norm_;
  std::string site_;
  ObserverOptions options_;
  std::unique_ptr<train::UpdateProbe> probe_;
};

}  // namespace

std::unique_ptr<train::Observer> statistics_observer(const train::Job& job,
                                                     const ObserverOptions& options) {
  const std::string norm = setting_of(job, "model.norm");
  const WatchedNorm watched = watched_norm(norm, kWhere);
  expect_whole_statistics(job, "statistics");
  const Graph graph = train::build_probe(job, job.network().sizes(job.train().batch), {});
  return std::make_unique<StatisticsObserver>(norm, site_in(graph, watched, options.site).name,
                                              options);
}

StatisticsLine statistics_line(std::int64_t step, const nlohmann::ordered_json& values) {
  StatisticsLine line{.step = step, .epoch = values.at("epoch")};
  for (const StatisticsName& what : kStatisticsNames) {
    const auto found = values.find(what.name);
    if (found == values.end()) continue;
    line.found.*what.field = found->is_null() ? NAN : found->get<double>();
  }
  return line;
}

}  // namespace keel::study
