// The small counterpart of Shen et al. 2020, tables 1 and 4: column norms on tokens of sentences
// whose scales differ, and how far batch statistics stray from running ones.
#include <algorithm>
#include <numeric>

#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/mini_jobs.h"
#include "studies/summary.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr std::size_t kLastSteps = 100;  // whose mean is the training loss

// Both with the release's eps, so that they differ in the rest.
constexpr const char* kPaper = "powernorm{heads=0,warmup=100,mode=paper,eps=1e-5}";
constexpr const char* kRelease = "powernorm{heads=0,warmup=100,mode=release}";

// A norm, with or without the layer scaling in front of it, and the results of a NumPy float64
// program with random numbers of its own.
struct PowerNormVariant {
  const char *label, *norm;
  bool layer_scale;
  const char *numpy_loss, *numpy_accuracy, *numpy_train_loss, *numpy_distances;
};
constexpr PowerNormVariant kHeavy[] = {
    {"layernorm", "layernorm", false, "0.581/0.631/0.617", "0.82/0.81", "0.61", "-"},
    {"batchnorm", "batchnorm", false, "1.353/1.010/1.031", "0.57/0.68", "1.04",
     "mean 0.081 to 0.30, var 0.63 to 8.1"},
    {"pn_v", "pn_v", false, "1.223/0.964/1.000", "0.68/0.73", "0.83", "psi2 0.71 to 9.3"},
    {"powernorm paper + ls", kPaper, true, "0.582/0.613/0.589", "0.82/0.81", "0.60",
     "psi2 0.035 to 0.058"},
    {"powernorm release + ls", kRelease, true, "0.576/0.619/0.599", "0.82/0.81", "0.60",
     "psi2 0.035 to 0.058"},
    {"batchnorm + ls", "batchnorm", true, "0.690/0.713", "0.79/0.78", "0.86", "var 0.033 to 0.051"},
    {"pn_v + ls", "pn_v", true, "0.609/0.641", "0.80/0.80", "0.64", "psi2 0.035 to 0.057"},
    {"powernorm paper", kPaper, false, "1.256", "0.65", "1.10", "psi2 0.74 to 9.8"},
    {"powernorm release", kRelease, false, "1.533", "0.57", "1.26", "psi2 0.92 to 12.7"},
    {"none", "none", false, "1.056", "0.70", "1.14", "-"}};
constexpr PowerNormVariant kLight[] = {
    {"layernorm", "layernorm", false, "0.148", "-", "-", "-"},
    {"batchnorm", "batchnorm", false, "0.220", "-", "-", "-"},
    {"pn_v", "pn_v", false, "0.160", "-", "-", "-"},
    {"powernorm paper + ls", kPaper, true, "0.137", "-", "-", "-"},
    {"none", "none", false, "0.139", "-", "-", "-"}};

// The runs of one variant: one entry per seed; the distances of the first seed, by running
// statistic.
struct PowerNormRuns {
  std::vector<double> loss, accuracy, train_loss;
  std::map<std::string, Distances> distances;
};
using RunsByLabel = std::map<std::string, PowerNormRuns>;

std::map<std::string, Distances> summarize(const Training& training) {
  std::map<std::string, Distances> summary;
  const std::string prefix = "distance/";
  for (const auto& [output, values] : training.traces()) {
    if (!output.starts_with(prefix)) continue;
    summary[output.substr(prefix.size())] = {quantile(values, 0.5), quantile(values, 0.99)};
  }
  return summary;
}

RunsByLabel train_all(const Options& options, std::span<const PowerNormVariant> variants, int seeds,
                      double spread) {
  RunsByLabel all;
  for (const PowerNormVariant& v : variants) {
    PowerNormRuns& runs = all[v.label];
    for (int i = 0; i < seeds; ++i) {
      const train::Job job = sentence_job(options, i, {v.norm, v.layer_scale, spread});
      Training training(options.backend, job);
      training.run({.mark = [](Graph&) {}});  // the network's own outputs
      const train::Evaluation test = training.evaluate(task::Split::kTest);
      runs.loss.push_back(test.loss);
      runs.accuracy.push_back(1 - test.at("error") / 100);
      const std::span losses = training.traces().at("loss");
      runs.train_loss.push_back(mean_of(losses.last(std::min(kLastSteps, losses.size()))));
      if (i == 0) runs.distances = summarize(training);
    }
  }
  return all;
}

std::string text(const std::map<std::string, Distances>& distances) {
  std::string text;
  for (const auto& [name, d] : distances) {
    text += fmt::format("{}{} {:.3g} to {:.3g}", text.empty() ? "" : ", ", name, d.median, d.p99);
  }
  return text.empty() ? "-" : text;
}

Table table_of(std::string title, std::span<const PowerNormVariant> variants,
               const RunsByLabel& all) {
  Table table{std::move(title),
              {{"norm", "test loss", "accuracy", "train loss", "distances, median to p99",
                "NumPy test loss", "accuracy", "train loss", "distances"}}};
  for (const PowerNormVariant& v : variants) {
    const PowerNormRuns& runs = all.at(v.label);
    table.rows.push_back({v.label, joined(runs.loss, 3), joined(runs.accuracy, 2),
                          joined(runs.train_loss, 2), text(runs.distances), v.numpy_loss,
                          v.numpy_accuracy, v.numpy_train_loss, v.numpy_distances});
  }
  return table;
}

}  // namespace

Result mini_powernorm(const Options& options) {
  const int seeds = options.seeds > 0 ? options.seeds : kSentenceSeeds;
  const RunsByLabel heavy = train_all(options, kHeavy, seeds, 1);
  const RunsByLabel light = train_all(options, kLight, 1, 0);
  Result result;
  result.tables = {
      table_of(
          "Sentences of uneven scale, a number a seed; ls: layerscaling in front of every norm",
          kHeavy, heavy),
      table_of("Sentences of one scale, the first seed", kLight, light)};
  SentenceNumbers numbers{.loss = {},
                          .accuracy = {},
                          .uneven = heavy.at("batchnorm").distances.at("running_var"),
                          .even = light.at("batchnorm").distances.at("running_var")};
  for (const auto& [label, runs] : heavy) {
    numbers.loss[label] = runs.loss;
    numbers.accuracy[label] = runs.accuracy;
  }
  result.seeds = std::size_t(seeds);
  judge_sentences(numbers, result);
  return result;
}

}  // namespace keel::study
