// The decay of the singular values of a trained table of embeddings. In the paper, on WMT14, they
// fall more slowly in a Transformer with PowerNorm than with LayerNorm.
#include "studies/singular_values.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/report/spread.h"
#include "frontend/text/dictionary.h"
#include "src/ops/embedding.h"
#include "studies/list.h"
#include "studies/training.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kSpectrumSteps = 300, kSpectrumSeeds = 1;

// A table of embeddings, and which of its rows no sentence uses.
struct EmbeddingTable {
  std::string name;
  std::int64_t padding_id = -1;
};

// The tables that the network looks symbols up in.
std::vector<EmbeddingTable> tables_of(const train::Job& job) {
  Graph g;
  nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate};
  const task::Network& network = job.network();
  std::vector<NamedValue> inputs;
  for (const task::Input& input : network.inputs(network.sizes(job.train().batch))) {
    inputs.push_back({input.name, g.input(input.name, input.type)});
  }
  network.build(net, task::Inputs(std::move(inputs)));
  std::vector<EmbeddingTable> tables;
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    if (node.op != &kEmbedding) continue;
    const Node& table = g.node(node.inputs[EmbeddingInput::kTable]);
    if (table.kind != NodeKind::kParameter) continue;
    tables.push_back({table.name, node.attrs.as<EmbeddingAttrs>().padding_id});
  }
  return tables;
}

EmbeddingTable chosen_table(const train::Job& job, const std::string& asked) {
  const std::vector<EmbeddingTable> tables = tables_of(job);
  check(!tables.empty(), ErrorKind::kUsage, "[singular-values] --task: {} has no embeddings",
        job.task().name());
  if (asked.empty()) return tables.front();
  const auto found = std::ranges::find(tables, asked, &EmbeddingTable::name);
  check(found != tables.end(), ErrorKind::kUsage,
        "[singular-values] --site: expected a table such as {}, got {}", tables.front().name,
        asked);
  return *found;
}

// Padding is left out, and so are the fillers of a dictionary, which no text has.
std::vector<bool> kept_rows_of(const train::Job& job, const EmbeddingTable& table,
                               std::int64_t rows) {
  std::vector<bool> kept(std::size_t(rows), true);
  if (table.padding_id >= 0) kept[std::size_t(table.padding_id)] = false;
  const task::Assets assets = job.network().assets();
  const std::string language = table.name.substr(0, table.name.find('/'));
  auto dictionary = assets.find(language + ".dictionary");
  if (dictionary == assets.end()) dictionary = assets.find("source.dictionary");
  if (dictionary == assets.end()) return kept;
  const auto parsed = text::Dictionary::parse(dictionary->second, dictionary->first);
  for (std::int64_t i = parsed.first_filler(); i < rows; ++i) kept[std::size_t(i)] = false;
  return kept;
}

struct Spectrum {
  std::string norm, table;                      // of runs the norm has its task before it
  std::vector<std::vector<double>> seeds = {};  // singular values
  std::vector<std::int64_t> numbers = {};       // of the seeds
};

void add_seed(Training& training, const train::Job& job, const EmbeddingTable& table,
              Spectrum& spectrum) {
  const Tensor values = training.variables().read(table.name, true).to(DType::kF64);
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
void add_run(const Options& options, const std::string& path, std::vector<Spectrum>& all) {
  const auto [name, file, job] = open_run(options, path);
  const EmbeddingTable table = chosen_table(job, options.site);
  Training training(options.backend, job);
  training.load(file, path);
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
  add_seed(training, job, table, *found);
}

// Whether all runs are of what the source states its claim of: translations of WMT14.
bool is_of_wmt(const Options& options) {
  return !options.runs.empty() && std::ranges::all_of(options.runs, [&](const std::string& path) {
    return finished_corpus_of(open_run(options, path)) == "wmt";
  });
}

Spectrum spectrum_of(const Options& options, const std::string& task, const std::string& norm) {
  Spectrum spectrum{norm, ""};
  const int seeds = options.seeds > 0 ? options.seeds : kSpectrumSeeds;
  for (int i = 0; i < seeds; ++i) {
    const train::Job job =
        zoo_job(options, i, {task, norm, kSpectrumSteps, encoder_settings(task)});
    const EmbeddingTable table = chosen_table(job, options.site);
    Training training(options.backend, job);
    training.run({});
    spectrum.table = table.name;
    add_seed(training, job, table, spectrum);
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
                  {.title = "singular values of the embeddings, by the largest",
                   .x_label = "index",
                   .y_label = "s_i / s_1",
                   .series = {}}};
  for (const Spectrum& spectrum : all) {
    const std::vector<double> curve = spectrum_curve(spectrum);
    std::vector<double> index(curve.size());
    std::iota(index.begin(), index.end(), 1.0);
    drawing.plot.series.push_back({spectrum.norm, index, curve, {}, {}});
  }
  return drawing;
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
  std::vector<Spectrum> all;
  for (const std::string& run : options.runs) add_run(options, run, all);
  if (all.empty()) {
    const std::string task = task_of(options, "translation");
    for (const std::string& norm : norms_of(options, {"layernorm", "powernorm"})) {
      all.push_back(spectrum_of(options, task, norm));
    }
  }
  Result result;
  result.tables = {spectrum_summary(all), spectra_table(all)};
  result.drawings = {spectra_drawing(all)};
  const bool is_of_source = is_of_wmt(options);
  for (std::size_t i = 1; i < all.size(); ++i) {
    const AreaNumbers of = areas_of(all[0], all[i], is_of_source);
    if (!of.differences.empty()) judge_areas(of, result);
  }
  return result;
}

}  // namespace keel::study
