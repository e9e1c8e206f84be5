// The small counterpart of Ba, Kiros, Hinton 2016, section 6.6 and figure 6: BatchNorm needs large
// batches, LayerNorm does not. And whether BatchNorm trains better before the activation, where
// Ioffe and Szegedy 2015 put it, than after it.
#include <algorithm>

#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/mini_jobs.h"
#include "studies/mlp_network.h"
#include "studies/summary.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr std::string_view kBatchRecipe = R"(
[train]
lr = 1e-3
)";

// A norm at a batch size, and the results of a NumPy float64 program with random numbers of its
// own.
struct BatchVariant {
  const char *label, *norm;
  int batch, steps;
  const char *numpy_loss, *numpy_error;
  const char* placement = "before";
};
constexpr const char* kAfterRelu = "batchnorm, after the ReLU";
constexpr BatchVariant kBatchVariants[] = {
    {"none", "none", 128, 400, "0.872", "44.8 %"},
    {"batchnorm", "batchnorm", 128, 400, "0.785", "44.8 %"},
    {"layernorm", "layernorm", 128, 400, "0.783", "45.2 %"},
    {kAfterRelu, "batchnorm", 128, 400, "-", "-", "after"},
    {"none", "none", 4, 3000, "0.915", "45.3 %"},
    {"batchnorm", "batchnorm{keep=0.99,unbiased=true}", 4, 3000, "1.371", "55.2 %"},
    {"layernorm", "layernorm", 4, 3000, "0.906", "46.0 %"}};

// One entry a seed: of all training rows in evaluation mode, and of the test rows in per cent.
struct BatchRuns {
  std::vector<double> loss, error;
};

BatchRuns train_with(const Options& options, const BatchVariant& variant, int seeds) {
  const int steps = options.steps > 0 ? options.steps : variant.steps;
  BatchRuns runs;
  for (int i = 0; i < seeds; ++i) {
    const train::Job job =
        mini_job(std::make_unique<Mlp>(), kBatchRecipe, options.seed + std::uint64_t(i),
                 {{"model.norm", variant.norm},
                  {"model.placement", variant.placement},
                  {"model.order", "drawn"},
                  {"train.batch", std::to_string(variant.batch)}},
                 steps);
    Training training(options.backend, job);
    training.run();
    runs.loss.push_back(training.evaluate(task::Split::kTrain).loss);
    runs.error.push_back(training.evaluate(task::Split::kTest).at("error"));
  }
  return runs;
}

}  // namespace

Result mini_batchsize(const Options& options) {
  const int seeds = options.seeds > 0 ? options.seeds : 3;
  Table table{"a 64-128-128-10 network, a number a seed",
              {{"batch", "norm", "train loss", "test error, %", "NumPy train loss", "error"}}};
  std::map<std::pair<int, std::string>, BatchRuns> all;
  for (const BatchVariant& v : kBatchVariants) {
    const BatchRuns& runs = all[{v.batch, v.label}] = train_with(options, v, seeds);
    table.rows.push_back({fmt::format("{}", v.batch), v.label, joined(runs.loss, 3),
                          joined(runs.error, 1), v.numpy_loss, v.numpy_error});
  }
  Result result;
  result.tables.push_back(std::move(table));
  result.seeds = std::size_t(seeds);
  judge_batch_losses({.large_batchnorm = all[{128, "batchnorm"}].loss,
                      .large_layernorm = all[{128, "layernorm"}].loss,
                      .small_none = all[{4, "none"}].loss,
                      .small_batchnorm = all[{4, "batchnorm"}].loss,
                      .small_layernorm = all[{4, "layernorm"}].loss},
                     result);
  const BatchRuns &before = all[{128, "batchnorm"}], &after = all[{128, kAfterRelu}];
  judge_placement({before.loss, after.loss, before.error, after.error}, result);
  return result;
}

}  // namespace keel::study
