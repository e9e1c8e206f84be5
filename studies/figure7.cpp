// Figure 7 of Shen et al. 2020 on small sentences, on a task or on runs: gain / psi of PN-V for
// every feature of every norm of a trained network, psi being the mean of the batches' psi_B over
// one pass of the training data. By lemma 2 a feature with gain <= psi shrinks its gradient. So it
// does with BatchNorm, whose psi is sigma_B; of PowerNorm it is what its gradient is divided by.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "studies/gradients_observer.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/mini_jobs.h"
#include "studies/observed_norms.h"
#include "studies/sample.h"
#include "studies/summary.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr std::size_t kBins = 6;
constexpr double kBinWidth = 0.25;  // the last bin has no end
constexpr int kFigureSteps = 400;   // of a task
constexpr int kFigureSeeds = 3;
constexpr std::size_t kDrawnBins = 24;

// A norm that divides a feature's gradient by a number that it takes from the batch.
struct DividingNorm {
  const OpInfo* op;
  int gain, divisor;  // an input, and the output with 1 / psi_B
};
constexpr DividingNorm kDividingNorms[] = {
    {&kPnV, PnVInput::kGain, PnVOutput::kRstd},
    {&kBatchNorm, BatchNormInput::kGain, BatchNormOutput::kRstd},
    {&kPowerNorm, PowerNormInput::kGain, PowerNormOutput::kRdx}};

struct SiteRatios {
  std::string site;
  std::string parameter;                 // the name of the gain; empty: there is none
  std::vector<double> gain, psi, ratio;  // (features)
};

struct DividingSite {
  ObservedNorm site;
  DividingNorm norm;
};

std::vector<DividingSite> dividing_sites(const Graph& g) {
  std::vector<DividingSite> all;
  for (const DividingNorm& norm : kDividingNorms) {
    for (const ObservedNorm& site : observed_norms(g, *norm.op)) all.push_back({site, norm});
  }
  return all;
}

SiteRatios before_pass(const Graph& g, const DividingSite& at) {
  const Value gain = g.node(at.site.forward).inputs[std::size_t(at.norm.gain)];
  const std::size_t features = std::size_t(g.shape({at.site.forward, at.norm.divisor})[0]);
  return {at.site.name,
          gain.valid() ? g.node(gain).name : "",
          {},
          std::vector<double>(features, 0),
          {}};
}

// The mean psi_B of every norm over one pass of the training data.
std::vector<SiteRatios> mean_psi(Backend& backend, Variables& variables, const train::Job& job) {
  std::vector<ObservedNorm> sites;
  std::vector<SiteRatios> ratios;
  double batches = 0;
  const auto mark_all = [&](Graph& g) {  // of every size of batches, the sites being the same
    const bool is_first = sites.empty();
    sites.clear();
    for (const DividingSite& at : dividing_sites(g)) {
      sites.push_back(at.site);
      mark(g, at.site, "rstd", {at.site.forward, at.norm.divisor});
      if (is_first) ratios.push_back(before_pass(g, at));
    }
  };
  const auto look = [&](const Program& program) {
    ++batches;
    for (std::size_t s = 0; s < sites.size(); ++s) {
      const Tensor rstd = fetch(program, sites[s], "rstd");
      for (std::size_t c = 0; c < ratios[s].psi.size(); ++c) {
        double& psi = ratios[s].psi[c];
        psi += (1 / rstd.at(std::int64_t(c)) - psi) / batches;
      }
    }
  };
  pass_over(backend, variables, job, {mark_all, look});
  return ratios;
}

// The ratios of trained weights.
std::vector<SiteRatios> ratios_of(Backend& backend, Variables& variables, const train::Job& job) {
  std::vector<SiteRatios> sites = mean_psi(backend, variables, job);
  for (SiteRatios& s : sites) {
    s.gain.assign(s.psi.size(), 1);
    if (!s.parameter.empty()) {
      const Tensor gain = variables.read(s.parameter, true).to(DType::kF64);
      s.gain.assign(gain.as<double>().begin(), gain.as<double>().end());
    }
    for (std::size_t c = 0; c < s.gain.size(); ++c) {
      s.ratio.push_back(std::abs(s.gain[c]) / s.psi[c]);
    }
  }
  return sites;
}

std::vector<SiteRatios> trained_ratios(const Options& options, const train::Job& job) {
  Training training(options.backend, job);
  training.run();
  return ratios_of(options.backend, training.variables(), job);
}

// A norm and the task that it was trained on, with the ratios of every seed or run.
struct Looked {
  std::string task, norm, data;
  bool is_whole = false;  // all were trained to their end
  std::vector<std::vector<SiteRatios>> seeds = {};
  std::set<std::int64_t> numbers = {};  // of the seeds
};

std::vector<SiteRatios> ratios_of_task(const Options& options, const train::Job& job) {
  std::vector<SiteRatios> sites = trained_ratios(options, job);
  check(!sites.empty(), ErrorKind::kUsage,
        "[figure7] --norm: expected batchnorm, pn_v or powernorm, got {}",
        setting_of(job, "model.norm"));
  return sites;
}

std::vector<SiteRatios> ratios_of_run(const Options& options, const StoredRun& run) {
  Variables variables(options.backend, 0);
  load_network(run.file, run.path, variables, run.job);
  std::vector<SiteRatios> sites = ratios_of(options.backend, variables, run.job);
  check(!sites.empty(), ErrorKind::kUsage,
        "[figure7] --run: expected a network with batchnorm, pn_v or powernorm, got {}", run.path);
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

// Every site's histogram as a line through the middles of its bins.
Drawing histogram_drawing(std::span<const SiteRatios> sites, const std::string& caption,
                          std::size_t number) {
  const std::vector<double> all = all_ratios(sites);
  // A ratio of 1 is in the picture, and the largest is in the last bin.
  const double width = std::max(1.0, std::ranges::max(all)) / double(kDrawnBins);
  Drawing drawing{
      fmt::format("figure7-{}", number),
      {.title = caption, .x_label = "|gain| / psi", .y_label = "features", .series = {}}};
  for (const SiteRatios& s : sites) {
    io::PlotSeries& series = drawing.plot.series.emplace_back();
    series.name = s.site;
    series.y.assign(kDrawnBins, 0);
    for (std::size_t b = 0; b < kDrawnBins; ++b) series.x.push_back(width * (double(b) + 0.5));
    for (const double r : s.ratio) ++series.y[std::min(kDrawnBins - 1, std::size_t(r / width))];
  }
  return drawing;
}

// A trained network, as tables and captions name it.
struct Named {
  std::string title, training;  // the second: training_text
  std::int64_t seed = 0;
};

void add_site_tables(std::span<const SiteRatios> sites, const Named& network, Result& result) {
  const std::string& title = network.title;
  Sample sample;
  sample.add(title, network.training, network.seed);
  result.tables.push_back(histogram(sites, title));
  add_features(sites, title, result);
  result.drawings.push_back(histogram_drawing(
      sites,
      sample.caption(fmt::format("{}: numbers of features by |gain| / psi; lines: the norms of one "
                                 "network, through the middles of {} bins",
                                 title, kDrawnBins)),
      result.drawings.size() + 1));
}

void judge_looked(const Looked& looked, Result& result) {
  std::vector<double> shares;
  for (const auto& sites : looked.seeds) shares.push_back(share_at_most_one(all_ratios(sites)));
  judge_share_seeds({looked.task, looked.norm, looked.data != "builtin", shares}, result);
}

// The data that a network was trained on: the corpus of a translation, otherwise the source of its
// data.
std::string data_of(const train::Job& job) {
  const std::string source = job.data().source, corpus = setting_of(job, "model.corpus");
  return source == "builtin" || corpus.empty() ? source : corpus;
}

// Runs of one task, norm and data are seeds of one network.
Looked& looked_at(std::vector<Looked>& all, const StoredRun& run) {
  const Looked made{std::string(run.job.task().name()), setting_of(run.job, "model.norm"),
                    data_of(run.job), true};
  auto found = std::ranges::find_if(all, [&](const Looked& l) {
    return std::tie(l.task, l.norm, l.data) == std::tie(made.task, made.norm, made.data);
  });
  if (found == all.end()) found = all.insert(found, made);
  check(found->numbers.insert(run.job.train().seed).second, ErrorKind::kUsage,
        "[figure7] --run: expected runs that differ in task, norm, data or seed, got {} besides "
        "another",
        run.path);
  return *found;
}

Result figure7_of_runs(const Options& options) {
  Result result;
  std::vector<Looked> all;
  const std::vector<StoredRun> runs = open_runs(options);
  constexpr std::string_view kMayDiffer[] = {"model.norm",    "model.final_norm",
                                             "model.scaling", "model.scaled_norms",
                                             "model.corpus",  "model.languages"};
  expect_one_recipe("figure7", runs, kMayDiffer);
  for (const StoredRun& run : runs) {
    const std::vector<SiteRatios> sites = ratios_of_run(options, run);
    add_site_tables(sites, {run.path, training_text(run), run.job.train().seed}, result);
    if (is_observed(run, "gradients")) {
      result.tables.push_back(gradients_table(run.path, observed_lines(run, "gradients")));
    }
    Looked& looked = looked_at(all, run);
    looked.is_whole = looked.is_whole && is_whole(run);
    looked.seeds.push_back(sites);
  }
  for (const Looked& looked : all) judge_looked(looked, result);
  if (!std::ranges::all_of(all, &Looked::is_whole)) result.leave_open_what_fails();
  return result;
}

Result figure7_of_task(const Options& options) {
  Result result;
  for (const std::string& norm : norms_of(options, {"pn_v"})) {
    Looked looked{options.task, norm, options.data.empty() ? "builtin" : options.data,
                  is_to_the_end(options)};
    for (int i = 0; i < seeds_of(options, kFigureSeeds); ++i) {
      const train::Job job =
          zoo_job(options, i, {options.task, norm, kFigureSteps, encoder_settings(options.task)});
      looked.seeds.push_back(ratios_of_task(options, job));
      const std::int64_t seed = job.train().seed;
      add_site_tables(looked.seeds.back(),
                      {fmt::format("{}, seed {}", norm, seed), training_text(job), seed}, result);
    }
    judge_looked(looked, result);
  }
  if (!is_to_the_end(options)) result.leave_open_what_fails();
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
    const train::Job job = sentence_job(options, 0, {"pn_v", layer_scale});
    const std::vector<SiteRatios> sites = trained_ratios(options, job);
    add_site_tables(sites, {norm, training_text(job), job.train().seed}, result);
    judge_shares(norm, layer_scale, all_ratios(sites), result);
  }
  return result;
}

}  // namespace keel::study
