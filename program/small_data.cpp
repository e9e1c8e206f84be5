#include "program/small_data.h"

#include <algorithm>
#include <array>

#include "frontend/io/message.h"

namespace keel::cli {
namespace {

// A run has at least so many updates, and so many times those of its warm-up.
constexpr std::int64_t kFewestUpdates = 300, kWarmups = 3;
constexpr std::int64_t kFewestRows = 16, kFewestTokens = 256;  // of a batch that is made smaller

std::int64_t updates_in_epoch(const train::Job& job, std::int64_t batch) {
  const auto seed = static_cast<std::uint64_t>(job.train().seed);
  const auto rows = job.splits().stream(task::Split::kTrain, {.batch = batch, .shuffle = seed});
  return (rows->steps(0) + job.train().accumulate - 1) / job.train().accumulate;
}

// Whether the data are a user's, and the user has chosen nothing that the updates depend on.
bool is_open(const RunArgs& args, const train::Job& job) {
  constexpr std::array<const char*, 5> kChosen = {"train.batch", "train.epochs", "train.max_steps",
                                                  "train.accumulate", "train.shards"};
  return job.data().source != "builtin" && args.recipe.empty() &&
         std::ranges::none_of(kChosen, [&](const char* key) { return names_key(args, key); });
}

}  // namespace

train::Job job_for_data(RunArgs& args, bool says) {
  train::Job job = find_job(args, says);
  if (!is_open(args, job)) return job;
  const train::TrainOptions& recipe = job.train();
  const std::int64_t wanted = std::max(kFewestUpdates, kWarmups * recipe.warmup),
                     least = job.task().batch_unit() == "tokens" ? kFewestTokens : kFewestRows;
  std::int64_t batch = recipe.batch, each = updates_in_epoch(job, batch), epochs = recipe.epochs;
  const auto updates = [&] {
    const std::int64_t all = each * epochs;
    return recipe.max_steps > 0 ? std::min(all, recipe.max_steps) : all;
  };
  while (updates() < wanted && batch / 2 >= least) each = updates_in_epoch(job, batch /= 2);
  if (updates() < wanted) epochs = std::max(epochs, (wanted + each - 1) / each);
  if (batch == recipe.batch && epochs == recipe.epochs) return job;
  if (says) {
    io::say(
        fmt::format("small data: train.batch={} and train.epochs={} in place of the recipe's {} "
                    "and {}, for {} updates",
                    batch, epochs, recipe.batch, recipe.epochs, updates()));
  }
  if (batch != recipe.batch) args.sets.push_back(fmt::format("train.batch={}", batch));
  if (epochs != recipe.epochs) args.sets.push_back(fmt::format("train.epochs={}", epochs));
  return make_job(args);
}

}  // namespace keel::cli
