// The decay of the singular values of a trained table of embeddings. In the paper, on WMT14, they
// fall more slowly in a Transformer with PowerNorm than with LayerNorm.
#include "studies/singular_values.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "frontend/report/spread.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/sample.h"
#include "studies/singular_values_observer.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kSpectrumSteps = 300, kSpectrumSeeds = 1;
const std::string kStudy = "[singular-values] --site";

struct Spectrum {
  std::string norm, table;                      // of runs the norm has its task before it
  std::vector<std::vector<double>> seeds = {};  // singular values
  std::vector<std::int64_t> numbers = {};       // of the seeds
  std::string training = {};                    // training_text
};

void add_seed(const Tensor& values, const train::Job& job, const EmbeddingTable& table,
              Spectrum& spectrum) {
  const std::size_t width = std::size_t(values.shape()[1]);
  check(
      spectrum.seeds.empty() || spectrum.seeds[0].size() == width, ErrorKind::kUsage,
      "[singular-values] --run: expected seeds of one network, but their embeddings are {} and {} "
      "wide",
      spectrum.seeds.empty() ? width : spectrum.seeds[0].size(), width);
  const std::vector<bool> kept = kept_rows_of(job, table, values.shape()[0]);
  spectrum.seeds.push_back(singular_values_of(values, kept));
  spectrum.numbers.push_back(job.train().seed);
}

// Runs of one task, norm and table are seeds of one spectrum.
void add_run(const Options& options, const StoredRun& run, std::vector<Spectrum>& all) {
  const auto& [path, file, job] = run;
  const EmbeddingTable table = chosen_table(job, options.site, kStudy);
  Variables variables(options.backend, 0);
  load_network(file, path, variables, job);
  const std::string norm =
      fmt::format("{} of {}", setting_of(job, "model.norm"), job.task().name());
  auto found = std::ranges::find_if(
      all, [&](const Spectrum& s) { return s.norm == norm && s.table == table.name; });
  if (found == all.end()) found = all.insert(found, Spectrum{norm, table.name});
  check(std::ranges::find(found->numbers, job.train().seed) == found->numbers.end(),
        ErrorKind::kUsage,
        "[singular-values] --run: expected runs that differ in task, norm or seed, got {} besides "
        "another",
        path);
  found->training = training_text(run);
  add_seed(variables.read(table.name), job, table, *found);
}

// Whether all runs are of what the source states its claim of: translations of WMT14.
bool is_of_wmt(const std::vector<StoredRun>& runs) {
  return !runs.empty() && std::ranges::all_of(runs, [](const StoredRun& r) {
    return finished_corpus_of(r) == "wmt";
  });
}

Spectrum spectrum_of(const Options& options, const std::string& task, const std::string& norm) {
  Spectrum spectrum{norm, ""};
  const int seeds = options.seeds > 0 ? options.seeds : kSpectrumSeeds;
  for (int i = 0; i < seeds; ++i) {
    const train::Job job =
        zoo_job(options, i, {task, norm, kSpectrumSteps, encoder_settings(task)});
    const EmbeddingTable table = chosen_table(job, options.site, kStudy);
    Training training(options.backend, job);
    training.run();
    spectrum.table = table.name;
    spectrum.training = training_text(job);
    add_seed(training.variables().read(table.name), job, table, spectrum);
  }
  return spectrum;
}

// The median over seeds of s_i / s_1.
std::vector<double> spectrum_curve(const Spectrum& spectrum) {
  std::vector<double> curve;
  for (std::size_t i = 0; i < spectrum.seeds[0].size(); ++i) {
    std::vector<double> of_seeds;
    for (const std::vector<double>& values : spectrum.seeds) {
      of_seeds.push_back(values[i] / values[0]);
    }
    curve.push_back(report::median_of(of_seeds));
  }
  return curve;
}

std::vector<double> summaries(const Spectrum& spectrum, double SpectrumSummary::*what) {
  std::vector<double> found;
  for (const std::vector<double>& values : spectrum.seeds)
    found.push_back(summary_of(values).*what);
  return found;
}

// The areas under one spectrum less those under another, of the seeds that both have.
SeedValues area_differences(const Spectrum& of, const Spectrum& first) {
  const std::vector<double> areas = summaries(of, &SpectrumSummary::area),
                            others = summaries(first, &SpectrumSummary::area);
  SeedValues differences;
  for (std::size_t i = 0; i < areas.size(); ++i) {
    const auto same = std::ranges::find(first.numbers, of.numbers[i]);
    if (same == first.numbers.end()) continue;
    differences.push_back(areas[i] - others[std::size_t(same - first.numbers.begin())]);
  }
  return differences;
}

bool is_of(const Spectrum& spectrum, const std::string& norm) {
  return spectrum.norm.starts_with(norm + " ") || spectrum.norm.starts_with(norm + "{");
}

// The claim is of powernorm's area less layernorm's, in whatever order they were given.
AreaNumbers areas_of(const Spectrum& first, const Spectrum& second, bool is_of_source) {
  const bool is_turned = is_of(first, "powernorm") && is_of(second, "layernorm");
  const Spectrum &of = is_turned ? first : second, &than = is_turned ? second : first;
  return {fmt::format("area of {} - {}'s", of.norm, than.norm),
          is_of_source && is_of(of, "powernorm") && is_of(than, "layernorm"),
          area_differences(of, than)};
}

Table spectra_table(const std::vector<Spectrum>& all) {
  Table table{"singular values, the median over seeds", {{"index", "sv_norm", "variant"}}};
  for (const Spectrum& spectrum : all) {
    const std::vector<double> curve = spectrum_curve(spectrum);
    for (std::size_t i = 0; i < curve.size(); ++i) {
      table.rows.push_back(
          {fmt::format("{}", i + 1), fmt::format("{:.6g}", curve[i]), spectrum.norm});
    }
  }
  return table;
}

Table spectrum_summary(const std::vector<Spectrum>& all) {
  Table table{"the median over seeds", {{"norm", "table", "area", "effective rank", "seeds"}}};
  for (const Spectrum& spectrum : all) {
    const double area = report::median_of(summaries(spectrum, &SpectrumSummary::area));
    const double rank = report::median_of(summaries(spectrum, &SpectrumSummary::effective_rank));
    table.rows.push_back({spectrum.norm, spectrum.table, fmt::format("{:.4f}", area),
                          fmt::format("{:.2f}", rank), fmt::format("{}", spectrum.seeds.size())});
  }
  return table;
}

Drawing spectra_drawing(const std::vector<Spectrum>& all) {
  Drawing drawing{"singular-values",
                  {.title = "", .x_label = "index", .y_label = "s_i / s_1", .series = {}}};
  Sample sample;
  for (const Spectrum& spectrum : all) {
    for (const std::int64_t seed : spectrum.numbers) {
      sample.add(spectrum.norm, spectrum.training, seed);
    }
    const std::vector<double> curve = spectrum_curve(spectrum);
    std::vector<double> index(curve.size());
    std::iota(index.begin(), index.end(), 1.0);
    drawing.plot.series.push_back({spectrum.norm, index, curve, {}, {}});
  }
  drawing.plot.title = sample.caption(
      "singular values of the embeddings, divided by the largest; lines: medians over seeds");
  return drawing;
}

// How the spectra came to be, of runs that were trained with `--observe singular-values`.
void add_observed(const std::vector<StoredRun>& runs, Result& result) {
  Table table{"while the runs trained",
              {{"norm", "seed", "step", "epoch", "area", "effective rank"}}};
  Drawing drawing{"area", {.title = "", .x_label = "update", .y_label = "area", .series = {}}};
  Sample sample;
  for (const StoredRun& run : runs) {
    if (!is_observed(run, "singular-values")) continue;
    const std::string norm = setting_of(run.job, "model.norm"),
                      seed = fmt::format("{}", run.job.train().seed);
    io::PlotSeries& series = drawing.plot.series.emplace_back();
    series.name = fmt::format("{}, seed {}", norm, seed);
    sample.add(norm, training_text(run), run.job.train().seed);
    for (const auto& line : observed_lines(run, "singular-values")) {
      const double area = line.at("area");
      table.rows.push_back({norm, seed, fmt::format("{}", line.at("step").get<std::int64_t>()),
                            fmt::format("{:.3f}", line.at("epoch").get<double>()),
                            fmt::format("{:.4f}", area),
                            fmt::format("{:.2f}", line.at("effective_rank").get<double>())});
      series.x.push_back(line.at("step"));
      series.y.push_back(area);
    }
  }
  if (table.rows.size() == 1) return;
  drawing.plot.title = sample.caption(
      "area under the singular values of the embeddings during training; a line for each run");
  result.tables.push_back(std::move(table));
  result.drawings.push_back(std::move(drawing));
}

}  // namespace

std::vector<double> singular_values_of(const Tensor& table, const std::vector<bool>& kept) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Tensor wide = table.to(DType::kF64);
  const std::int64_t n = wide.shape()[0], d = wide.shape()[1];
  const Eigen::Map<const Matrix> all(wide.as<double>().data(), n, d);
  Matrix gram = Matrix::Zero(d, d);
  for (std::int64_t i = 0; i < n; ++i) {
    if (kept[std::size_t(i)]) gram += all.row(i).transpose() * all.row(i);
  }
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(gram, Eigen::EigenvaluesOnly);
  std::vector<double> values;
  for (std::int64_t i = d - 1; i >= 0; --i) {
    values.push_back(std::sqrt(std::max(solver.eigenvalues()(i), 0.0)));
  }
  return values;
}

SpectrumSummary summary_of(const std::vector<double>& values) {
  const double sum = std::reduce(values.begin(), values.end());
  double entropy = 0;
  for (const double value : values) {
    if (value > 0) entropy -= value / sum * std::log(value / sum);
  }
  return {sum / (double(values.size()) * values[0]), std::exp(entropy)};
}

Result singular_values(const Options& options) {
  const std::vector<StoredRun> runs = open_runs(options);
  constexpr std::string_view kMayDiffer[] = {"model.norm",    "model.final_norm",
                                             "model.scaling", "model.scaled_norms",
                                             "model.corpus",  "model.languages"};
  expect_one_recipe("singular-values", runs, kMayDiffer);
  std::vector<Spectrum> all;
  for (const StoredRun& run : runs) add_run(options, run, all);
  if (all.empty()) {
    const std::string task = task_of(options, "translation");
    const std::vector<std::string> source = source_norms(options, task);
    const std::vector<std::string> norms = {"layernorm", source.end()[-2], source.back()};
    for (const std::string& norm : norms_of(options, norms)) {
      all.push_back(spectrum_of(options, task, norm));
    }
  }
  Result result;
  result.tables = {spectrum_summary(all), spectra_table(all)};
  result.drawings = {spectra_drawing(all)};
  add_observed(runs, result);
  const bool is_of_source = is_of_wmt(runs);
  for (std::size_t i = 1; i < all.size(); ++i) {
    const AreaNumbers of = areas_of(all[0], all[i], is_of_source);
    if (!of.differences.empty()) judge_areas(of, result);
  }
  return result;
}

}  // namespace keel::study
