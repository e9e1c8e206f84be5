// Theorem 1 of Xu et al. 2019 while a network trains: at every norm, in every step and for every
// row it is checked as theorem1_rows.h states it. The study also shows how much of the gradient's
// variance each depth lets through, which the paper gives as the reason why the derivatives of mean
// and variance help deep networks.
#include <algorithm>

#include "src/ops/norm/norm.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/mini_jobs.h"
#include "studies/observed_norms.h"
#include "studies/theorem1_rows.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr double kEps = 1e-5;
constexpr int kSteps = 100;
constexpr int kListed[] = {1, 10, 100};  // the steps whose lines are printed

// The mean over rows of one norm in one step.
RowMoments average(std::span<const RowMoments> rows) {
  RowMoments sum;
  const double n = double(rows.size());
  for (const RowMoments& r : rows) {
    sum.g_mean += r.g_mean / n;
    sum.g_variance += r.g_variance / n;
    sum.s += r.s / n;
    sum.dx_mean += r.dx_mean / n;
    sum.dx_variance += r.dx_variance / n;
    sum.ratio += r.ratio / n;
  }
  return sum;
}

struct Line {
  int step;
  std::string site;
  RowMoments mean;
};

// One training of one variant.
class Recorder {
 public:
  explicit Recorder(const Detaching& detaching) : detaching_(detaching) {}

  StepObserver observer() {
    return {.mark = [this](Graph& g) { mark_all(g); },
            .look = [this](const TrainedStep& step) { look(*step.program); }};
  }
  const std::vector<Line>& lines() const { return lines_; }
  // The ratio of each norm, in the order of the network, over all steps.
  const std::vector<double>& mean_ratios() const { return mean_ratios_; }
  const RowMoments& worst() const { return worst_; }

 private:
  void mark_all(Graph& g) {
    sites_ = observed_norms(g, detaching_.op);
    mean_ratios_.assign(sites_.size(), 0);
    for (const ObservedNorm& site : sites_) {
      mark(g, site, "x", g.node(site.forward).inputs[NormInput::kX]);
      mark(g, site, "dy", g.node(site.backward).inputs.back());
      mark(g, site, "dx", {site.backward, NormGradient::kDx});
    }
  }

  void look(const Program& program) {
    ++step_;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const RowMoments mean = average(judge(program, sites_[i]));
      lines_.push_back({step_, sites_[i].name, mean});
      mean_ratios_[i] += (mean.ratio - mean_ratios_[i]) / step_;
    }
  }

  std::vector<RowMoments> judge(const Program& program, const ObservedNorm& site) {
    const Tensor x = fetch(program, site, "x"), dy = fetch(program, site, "dy"),
                 dx = fetch(program, site, "dx");
    std::vector<RowMoments> rows;
    for (std::int64_t i = 0; i < x.shape()[0]; ++i) {
      const RowMoments& r =
          rows.emplace_back(row_moments(detaching_, kEps, {row(x, i), row(dy, i), row(dx, i)}));
      take_largest(worst_.mean_error, r.mean_error);
      take_largest(worst_.variance_error, r.variance_error);
      take_largest(worst_.ratio, r.ratio);
    }
    return rows;
  }

  const Detaching& detaching_;
  std::vector<ObservedNorm> sites_;
  std::vector<Line> lines_;
  std::vector<double> mean_ratios_;
  RowMoments worst_;
  int step_ = 0;
};

Recorder train_with(const Options& options, const Detaching& detaching) {
  const std::string norm = fmt::format("{}{{eps={}}}", detaching.norm, kEps);
  const train::Job job = vector_job(options, 0, {.norm = norm, .post = false, .steps = kSteps});
  Training training(options.backend, job);
  Recorder recorder(detaching);
  training.run(recorder.observer());
  return recorder;
}

void add_lines(const std::string& norm, const Recorder& recorder, Table& table) {
  for (const Line& line : recorder.lines()) {
    if (std::ranges::find(kListed, line.step) == std::end(kListed)) continue;
    const RowMoments& m = line.mean;
    std::vector<std::string>& cells = table.rows.emplace_back(
        std::vector<std::string>{norm, fmt::format("{}", line.step), line.site});
    for (double value : {m.g_mean, m.g_variance, m.s, m.dx_mean, m.dx_variance}) {
      cells.push_back(fmt::format("{:.2e}", value));
    }
    cells.push_back(fmt::format("{:.4f}", m.ratio));
  }
}

void add_checks(const Detaching& v, const Recorder& recorder, Result& result) {
  const RowMoments& worst = recorder.worst();
  judge_rows(v.norm + ": ", v, {worst.mean_error, worst.variance_error, worst.ratio}, result);
  judge_depths(v, recorder.mean_ratios(), result);
}

// A column a variant, a row a norm of the network.
void add_depths(const std::vector<Line>& lines, const std::vector<std::vector<double>>& ratios,
                Table& table) {
  for (std::size_t i = 0; i < ratios[0].size(); ++i) {
    std::vector<std::string>& cells =
        table.rows.emplace_back(std::vector<std::string>{lines[i].site});
    for (const std::vector<double>& of : ratios) cells.push_back(fmt::format("{:.4f}", of[i]));
  }
}

}  // namespace

Result theorem1_training(const Options& options) {
  Result result;
  Table lines{fmt::format("means over the rows of a batch; {}", kRowSymbols),
              {{"norm", "step", "site", "mean(g)", "var(g)", "s", "mean(dx)", "var(dx)", "ratio"}}};
  Table depths{"the mean ratio of all steps for each depth", {{"site"}}};
  std::vector<std::vector<double>> ratios;
  std::vector<Line> sites;
  for (const Detaching& detaching : detachings()) {
    const Recorder recorder = train_with(options, detaching);
    depths.rows[0].push_back(detaching.norm);
    ratios.push_back(recorder.mean_ratios());
    sites = recorder.lines();
    add_lines(detaching.norm, recorder, lines);
    add_checks(detaching, recorder, result);
  }
  add_depths(sites, ratios, depths);
  result.tables.push_back(std::move(depths));
  result.tables.push_back(std::move(lines));
  return result;
}

}  // namespace keel::study
