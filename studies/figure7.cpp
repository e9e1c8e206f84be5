// Figure 7 of Shen et al. 2020 on small sentences, or on a task: gain / psi of PN-V for every
// feature of every norm of a trained network, psi being the mean of the batches' psi_B over one
// pass of the training data. By lemma 2 a feature with gain <= psi shrinks its gradient.
#include <algorithm>
#include <array>
#include <cmath>

#include "src/ops/norm/pn_v.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/mini_jobs.h"
#include "studies/norm_sites.h"
#include "studies/summary.h"
#include "studies/training.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr std::size_t kBins = 6;
constexpr double kBinWidth = 0.25;  // the last bin has no end
constexpr int kFigureSteps = 400;   // of a task

struct SiteRatios {
  std::string site;
  std::vector<double> gain, psi, ratio;  // (features)
};

// The mean psi_B = 1 / rpsi of every norm over one pass of a training.
template <class Training>
std::vector<SiteRatios> mean_psi(Training& training) {
  std::vector<NormSite> sites;
  std::vector<SiteRatios> ratios;
  double batches = 0;
  const auto mark_all = [&](Graph& g) {  // of every size of batches, the sites being the same
    const bool is_first = sites.empty();
    sites = norm_sites(g, kPnV);
    for (const NormSite& site : sites) {
      mark(g, site, "rpsi", {site.forward, 1});
      if (!is_first) continue;
      const std::size_t features = std::size_t(g.shape({site.forward, 1})[0]);
      ratios.push_back({site.name, {}, std::vector<double>(features, 0), {}});
    }
  };
  const auto look = [&](const Program& program) {
    ++batches;
    for (std::size_t s = 0; s < sites.size(); ++s) {
      const Tensor rpsi = fetch(program, sites[s], "rpsi");
      for (std::size_t c = 0; c < ratios[s].psi.size(); ++c) {
        double& psi = ratios[s].psi[c];
        psi += (1 / rpsi.at(std::int64_t(c)) - psi) / batches;
      }
    }
  };
  training.pass({mark_all, look});
  return ratios;
}

// Of a training that has run.
template <class Training>
std::vector<SiteRatios> ratios_of(Training& training) {
  std::vector<SiteRatios> sites = mean_psi(training);
  for (SiteRatios& s : sites) {
    const Tensor gain = training.variables().read(s.site + "/gain", true).to(DType::kF64);
    s.gain.assign(gain.as<double>().begin(), gain.as<double>().end());
    for (std::size_t c = 0; c < s.gain.size(); ++c) {
      s.ratio.push_back(std::abs(s.gain[c]) / s.psi[c]);
    }
  }
  return sites;
}

std::vector<SiteRatios> train_with(const Options& options, bool layer_scale) {
  const train::Job job = sentence_job(options, 0, {"pn_v", layer_scale});
  Training training(options.backend, job, RowOrder::kStream);
  training.run();
  return ratios_of(training);
}

std::vector<SiteRatios> train_task(const Options& options, const std::string& norm) {
  const train::Job job = zoo_job(options, 0, {options.task, norm, kFigureSteps});
  Training training(options.backend, job);
  training.run({});
  std::vector<SiteRatios> sites = ratios_of(training);
  check(!sites.empty(), ErrorKind::kUsage, "[figure7] --norm: expected pn_v, got {}", norm);
  return sites;
}

std::vector<SiteRatios> ratios_of_run(const Options& options, const std::string& path) {
  const auto [name, file, job] = open_run(options, path);
  Training training(options.backend, job);
  training.load(file, path);
  std::vector<SiteRatios> sites = ratios_of(training);
  check(!sites.empty(), ErrorKind::kUsage, "[figure7] --run: expected a network with pn_v, got {}",
        path);
  return sites;
}

void add_features(std::span<const SiteRatios> sites, const std::string& norm, Result& result) {
  Table table{norm + ": every feature", {{"layer", "site", "feature", "gain", "psi", "ratio"}}};
  for (std::size_t s = 0; s < sites.size(); ++s) {
    for (std::size_t c = 0; c < sites[s].ratio.size(); ++c) {
      table.rows.push_back({fmt::format("{}", s), sites[s].site, fmt::format("{}", c),
                            fmt::format("{:.4f}", sites[s].gain[c]),
                            fmt::format("{:.4f}", sites[s].psi[c]),
                            fmt::format("{:.4f}", sites[s].ratio[c])});
    }
  }
  result.tables.push_back(std::move(table));
}

Table histogram(std::span<const SiteRatios> sites, const std::string& norm) {
  Table table{norm + ": how many features have which |gain| / psi", {{"site"}}};
  for (std::size_t b = 0; b < kBins; ++b) {
    table.rows[0].push_back(b + 1 < kBins ? fmt::format("to {:.2f}", kBinWidth * double(b + 1))
                                          : fmt::format("above {:.2f}", kBinWidth * double(b)));
  }
  table.rows[0].insert(table.rows[0].end(), {"median", "largest", "share <= 1"});
  for (const SiteRatios& s : sites) {
    std::array<int, kBins> bins{};
    for (double r : s.ratio) ++bins[std::min(kBins - 1, std::size_t(r / kBinWidth))];
    std::vector<std::string>& cells = table.rows.emplace_back(std::vector<std::string>{s.site});
    for (int count : bins) cells.push_back(fmt::format("{}", count));
    cells.push_back(fmt::format("{:.3f}", quantile(s.ratio, 0.5)));
    cells.push_back(fmt::format("{:.3f}", std::ranges::max(s.ratio)));
    cells.push_back(fmt::format("{:.3f}", share_at_most_one(s.ratio)));
  }
  return table;
}

std::vector<double> all_ratios(std::span<const SiteRatios> sites) {
  std::vector<double> all;
  for (const SiteRatios& s : sites) all.insert(all.end(), s.ratio.begin(), s.ratio.end());
  return all;
}

Result figure7_of_runs(const Options& options) {
  Result result;
  for (const std::string& path : options.runs) {
    const std::vector<SiteRatios> sites = ratios_of_run(options, path);
    result.tables.push_back(histogram(sites, path));
    add_features(sites, path, result);
    judge_shares(path, false, all_ratios(sites), result);
  }
  return result;
}

Result figure7_of_task(const Options& options) {
  Result result;
  for (const std::string& norm : norms_of(options, {"pn_v"})) {
    const std::vector<SiteRatios> sites = train_task(options, norm);
    result.tables.push_back(histogram(sites, norm));
    add_features(sites, norm, result);
    judge_shares(options.task + ", " + norm, false, all_ratios(sites), result);
  }
  return result;
}

}  // namespace

Result figure7(const Options& options) {
  if (!options.runs.empty()) return figure7_of_runs(options);
  if (!options.task.empty()) return figure7_of_task(options);
  const bool asks = !options.norms.empty() || !options.data.empty() || !options.settings.empty();
  check(!asks, ErrorKind::kUsage,
        "[figure7] --task: expected one beside --norm, --data or --set, got none");
  Result result;
  for (const auto& [norm, layer_scale] : {std::pair{"pn_v", false}, {"pn_v + ls", true}}) {
    const std::vector<SiteRatios> sites = train_with(options, layer_scale);
    result.tables.push_back(histogram(sites, norm));
    add_features(sites, norm, result);
    judge_shares(norm, layer_scale, all_ratios(sites), result);
  }
  return result;
}

}  // namespace keel::study
