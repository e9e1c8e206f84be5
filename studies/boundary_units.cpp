// The units of a network of convolutions near the boundary of its images, beside the inner ones of
// the same layers (Ba, Kiros, Hinton 2016, section 6.7: layer normalization helps such networks
// less, because units whose receptive fields lie near the boundary are rarely turned on, and so
// have very different statistics from the rest of their layer). They are measured behind every
// ReLU on images, over one pass of the training rows: how often a unit is on, its mean and its
// variance. The boundary is the outer eighth of a side, one unit at least.
#include <algorithm>
#include <cmath>

#include "src/ops/elementwise.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/summary.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kBoundarySteps = 300, kBoundarySeeds = 3;
constexpr double kRare = 0.05;  // a unit that is on for fewer cases is rarely on

// One layer: sums over cases for each of its units (channels, height, width).
struct UnitSums {
  std::int64_t height = 0, width = 0;
  double cases = 0;
  std::vector<double> on, sum, squares;
};

void add_cases(const Tensor& y, UnitSums& of) {
  const Shape& shape = y.shape();
  const std::int64_t units = shape.elements(1, 4);
  of.height = shape[2], of.width = shape[3];
  for (std::vector<double>* sums : {&of.on, &of.sum, &of.squares}) {
    sums->resize(std::size_t(units));
  }
  const std::span<const double> values = y.as<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t unit = i % std::size_t(units);
    of.on[unit] += values[i] > 0;
    of.sum[unit] += values[i];
    of.squares[unit] += values[i] * values[i];
  }
  of.cases += double(shape[0]);
}

bool is_at_boundary(const UnitSums& of, std::size_t unit) {
  const auto place = std::int64_t(unit) % (of.height * of.width);
  const std::int64_t y = place / of.width, x = place % of.width,
                     rows = std::max<std::int64_t>(of.height / 8, 1),
                     columns = std::max<std::int64_t>(of.width / 8, 1);
  return y < rows || y >= of.height - rows || x < columns || x >= of.width - columns;
}

// Means over the units of one part of a layer.
UnitStatistics ring_of(const UnitSums& of, bool boundary) {
  UnitStatistics part;
  double units = 0;
  for (std::size_t i = 0; i < of.sum.size(); ++i) {
    if (is_at_boundary(of, i) != boundary) continue;
    const double centre = of.sum[i] / of.cases, on = of.on[i] / of.cases;
    part.on += on;
    part.rare += on < kRare;
    part.mean += centre;
    part.variance += of.squares[i] / of.cases - centre * centre;
    ++units;
  }
  for (double UnitStatistics::*value : {&UnitStatistics::on, &UnitStatistics::rare,
                                        &UnitStatistics::mean, &UnitStatistics::variance}) {
    part.*value /= units;
  }
  return part;
}

std::vector<Value> image_relus(const Graph& g) {
  std::vector<Value> found;
  for (int i = 0; i < g.size(); ++i) {
    if (g.node(i).op != &elementwise_op(EwCode::kRelu)) continue;
    if (g.shape({i, 0}).rank() == 4) found.push_back({i, 0});
  }
  check(!found.empty(), ErrorKind::kUsage,
        "[boundary-units] --task: expected a network with ReLUs on images");
  return found;
}

std::string unit_output(std::size_t layer) { return fmt::format("units/{}", layer); }

std::vector<UnitSums> measured_layers(const Options& options, const train::Job& job) {
  Training training(options.backend, job);
  training.run();
  std::vector<UnitSums> layers;
  const auto mark_units = [&](Graph& g) {
    const std::vector<Value> relus = image_relus(g);
    layers.resize(relus.size());
    for (std::size_t i = 0; i < relus.size(); ++i) g.mark_output(unit_output(i), relus[i]);
  };
  const auto look = [&](const Program& program) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      add_cases(program.fetch(unit_output(i), true).to(DType::kF64), layers[i]);
    }
  };
  pass_over(options.backend, training.variables(), job, {.mark = mark_units, .look = look});
  return layers;
}

void add_part(const std::vector<std::string>& who, const char* name, const UnitStatistics& part,
              Table& table) {
  std::vector<std::string>& cells = table.rows.emplace_back(who);
  cells.push_back(name);
  for (double value : {part.on, part.rare, part.mean, part.variance}) {
    cells.push_back(fmt::format("{:.4g}", value));
  }
}

}  // namespace

Result boundary_units(const Options& options) {
  const std::string task = task_of(options, "mnist_cnn");
  Table table{fmt::format("means over the units of a layer, after training; rare: on for fewer "
                          "than {:g} % of the cases",
                          100 * kRare),
              {{"norm", "seed", "layer", "units", "on", "rare", "mean", "variance"}}};
  Result result;
  for (const std::string& norm : distinct_norms_of(options, {"none", "layernorm"})) {
    std::vector<std::vector<UnitParts>> seeds;
    for (int i = 0; i < seeds_of(options, kBoundarySeeds); ++i) {
      const train::Job job = zoo_job(options, i, {task, norm, kBoundarySteps});
      const std::vector<UnitSums> layers = measured_layers(options, job);
      std::vector<UnitParts>& parts = seeds.emplace_back();
      for (std::size_t l = 0; l < layers.size(); ++l) {
        const UnitParts& p =
            parts.emplace_back(ring_of(layers[l], true), ring_of(layers[l], false));
        const std::vector<std::string> who{norm, fmt::format("{}", options.seed + std::uint64_t(i)),
                                           fmt::format("{}", l + 1)};
        add_part(who, "boundary", p.boundary, table);
        add_part(who, "inner", p.inner, table);
      }
    }
    judge_boundary(task + ", " + norm, seeds, result);
  }
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace keel::study
