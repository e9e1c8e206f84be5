// Steps that are cut into shards: what an update is does not depend on who runs which shard.
#include "frontend/train/shard_runner.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "backends/reference/backend.h"
#include "frontend/train/step_graph.h"
#include "frontend/train/trainer.h"
#include "tests/support/checks.h"
#include "tests/support/poisoned.h"
#include "tests/support/same_run.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thread_ranks.h"

namespace keel::train {
namespace {

using test::check_same_end;
using test::Settings;
using test::small_job;
using test::operator+;

using MakeJob = std::function<Job()>;

// Trains as so many ranks, threads here, each with data of its own.
void train_as(int ranks, const std::filesystem::path& folder, const MakeJob& make_job,
              bool resume = false) {
  test::run_ranks(ranks, [&](Communicator& all) {
    const Job job = make_job();
    const auto backend = make_backend(default_backend());
    RunOptions options{.folder = folder, .resume = resume, .quiet = true, .facts = {}};
    options.ranks = &all;
    Trainer(*backend, job, options).run();
  });
}

void check_any_ranks(const Settings& settings, const char* model, std::int64_t steps) {
  const test::TempDir temp;
  const auto make = [&] {
    return small_job(settings + Settings{fmt::format("train.max_steps={}", steps)}, model);
  };
  train_as(1, temp / "1", make);
  for (const int ranks : {2, 3, 7}) {
    CAPTURE(model);
    CAPTURE(ranks);
    const std::string name = std::to_string(ranks);
    train_as(ranks, temp / name, make);
    check_same_end(temp / name, temp / "1", steps);
  }
}

TEST_CASE("shards: any number of ranks gives the same bytes") {
  check_any_ranks({"train.shards=7", "train.clip=global", "train.log_every=2"}, "mnist_mlp", 11);
  check_any_ranks({"train.shards=8", "train.optimizer=sgd", "train.momentum=0.9"}, "mnist_cnn", 3);
}

TEST_CASE("shards: so it is with padding, empty shards, buckets and dropout" *
          doctest::test_suite("slow")) {
  check_any_ranks({"train.shards=7"}, "text_classifier", 4);
  check_any_ranks({"train.shards=9"}, "translation", 3);
  check_any_ranks({"train.shards=12"}, "handwriting", 2);  // of eight rows
}

TEST_CASE("shards: so it is with micro-batches, of which an epoch's last update has fewer") {
  check_any_ranks({"train.shards=7", "train.accumulate=3", "train.batch=30"}, "mnist_mlp", 7);
}

TEST_CASE("shards: states of norms over a shard are averaged, in any number of ranks") {
  check_any_ranks({"train.shards=7", "train.statistics=local", "model.norm=batchnorm"}, "mnist_mlp",
                  4);
  check_any_ranks({"train.shards=7", "train.statistics=local", "model.norm=powernorm"}, "mnist_mlp",
                  4);
}

TEST_CASE("shards: norms over the whole batch give the same bytes in any number of ranks") {
  for (const char* norm : {"batchnorm", "powernorm", "mabn"}) {
    check_any_ranks({"train.shards=7", fmt::format("model.norm={}", norm)}, "mnist_mlp", 4);
  }
}

TEST_CASE("shards: so do those with masks, shards of padding and shards without a row" *
          doctest::test_suite("slow")) {
  check_any_ranks({"train.shards=9", "model.norm=powernorm"}, "text_classifier", 3);
  check_any_ranks({"train.shards=12", "model.norm=batchnorm"}, "mnist_cnn", 2);
}

TEST_CASE("shards: another number of ranks resumes, and nothing changes") {
  const test::TempDir temp;
  const auto until = [](std::int64_t steps) {
    return [steps] {
      return small_job({"train.shards=5", "train.batch=20", "train.log_every=1",
                        fmt::format("train.max_steps={}", steps)});
    };
  };
  train_as(1, temp / "straight", until(30));
  train_as(1, temp / "moved", until(9));
  train_as(3, temp / "moved", until(21), true);
  train_as(2, temp / "moved", until(30), true);
  check_same_end(temp / "moved", temp / "straight", 30);
}

// Some updates of a job on the reference backend, in float64.
struct ShardTrained {
  reference::ReferenceBackend backend;
  Variables variables{backend, 1};
  OneRank one;
  std::vector<double> losses;

  explicit ShardTrained(const Settings& settings, const char* model = "mnist_mlp",
                        std::int64_t updates = 2) {
    const Job job = small_job(settings, model);
    const auto rows = job.splits().stream(
        task::Split::kTrain, {.batch = job.train().batch, .shuffle = 1, .shard_range = {}});
    const auto steps = make_steps(backend, variables, job, *rows, {one});
    const std::int64_t accumulate = job.train().accumulate, of_epoch = rows->steps(0) / accumulate;
    for (std::int64_t step = 0; step < updates; ++step) {
      steps->start({.step = step, .epoch = step / of_epoch, .batch = step % of_epoch * accumulate});
      losses.push_back(steps->next(true)->loss);
    }
  }
};

void check_close(const ShardTrained& a, const ShardTrained& b, double bound) {
  REQUIRE(a.losses.size() == b.losses.size());
  for (std::size_t step = 0; step < a.losses.size(); ++step) {
    CHECK(a.losses[step] == doctest::Approx(b.losses[step]).epsilon(1e-12));
  }
  for (const auto& [name, variable] : b.variables.all()) {
    CAPTURE(name);
    if (is_gathered(name)) continue;
    const Tensor x = a.variables.read(name, true), y = b.variables.read(name, true);
    double difference = 0, size = 0;
    for (std::int64_t e = 0; e < x.elements(); ++e) {
      difference = std::max(difference, std::abs(x.at(e) - y.at(e)));
      size = std::max(size, std::abs(x.at(e)));
    }
    // The bias of an attention's keys has the gradient 0, of which only rounding is left.
    CHECK(difference <= bound * std::max(size, 1e-6));
  }
}

// In float64 and up to its rounding, for sums are in another order: the same masks are drawn too.
TEST_CASE("shards: the pieces of a batch make its update") {
  const Settings sgd{"train.optimizer=sgd", "train.clip=global", "train.clip_limit=0.1"};
  check_close(ShardTrained(sgd + Settings{"train.shards=5"}), ShardTrained(sgd), 1e-11);
  for (const char* model : {"translation", "attentive_reader"}) {  // with dropout
    CAPTURE(model);
    check_close(ShardTrained(sgd + Settings{"train.shards=3"}, model), ShardTrained(sgd, model),
                1e-9);
  }
}

TEST_CASE("shards: micro-batches and shards of them are the pieces of one batch") {
  const Settings sgd{"train.optimizer=sgd"};
  check_close(
      ShardTrained(sgd + Settings{"train.batch=32", "train.accumulate=2", "train.shards=3"}),
      ShardTrained(sgd + Settings{"train.batch=32", "train.accumulate=2"}), 1e-11);
}

// When four shards have two rows, every other shard has one. A shard without a row has no
// statistics.
TEST_CASE("shards: states are averaged over the shards that have rows") {
  const Settings local{"train.optimizer=sgd", "train.batch=2", "train.statistics=local"};
  for (const char* norm : {"batchnorm", "pn_v", "powernorm", "mabn"}) {
    CAPTURE(norm);
    const Settings with = local + Settings{fmt::format("model.norm={}", norm)};
    check_close(ShardTrained(with + Settings{"train.shards=4"}),
                ShardTrained(with + Settings{"train.shards=2"}), 1e-12);
    check_close(ShardTrained(with + Settings{"train.shards=7"}),
                ShardTrained(with + Settings{"train.shards=2"}), 1e-12);
  }
}

// In float64 and up to its rounding: statistics, gradients, gains and states are those of the norm
// on the whole batch, which 5 shards cut into pieces of 12 and 13 rows.
TEST_CASE("shards: a norm over the batch is that of the whole batch") {
  const Settings sgd{"train.optimizer=sgd", "train.lr=0.1", "train.batch=64"};
  for (const char* norm :
       {"batchnorm", "batchnorm{unbiased=true}", "noisybatchnorm",
        "batchrenorm{r_max=1.2,d_max=0.3}", "pn_v", "powernorm", "powernorm{mode=paper,warmup=3}",
        "mabn{m=2,warmup=0}", "unifiednorm{m=2,warmup=0}"}) {
    CAPTURE(norm);
    const Settings with = sgd + Settings{fmt::format("model.norm={}", norm)};
    check_close(ShardTrained(with + Settings{"train.shards=5"}), ShardTrained(with), 1e-9);
  }
}

// Rows of unequal lengths, of which the shards hold unequal numbers of words.
TEST_CASE("shards: so is a norm with a mask, and one of images") {
  const Settings sgd{"train.optimizer=sgd", "train.lr=0.1"};
  for (const char* norm : {"batchnorm", "pn_v", "powernorm", "mabn{m=2,warmup=0}"}) {
    CAPTURE(norm);
    const Settings with = sgd + Settings{fmt::format("model.norm={}", norm)};
    check_close(ShardTrained(with + Settings{"train.shards=5"}, "text_classifier"),
                ShardTrained(with, "text_classifier"), 1e-9);
  }
  const Settings images = sgd + Settings{"model.norm=batchnorm", "train.batch=6"};
  check_close(ShardTrained(images + Settings{"train.shards=8"}, "mnist_cnn"),
              ShardTrained(images, "mnist_cnn"), 1e-9);
}

// The weights stay as they are, so that an update adds rounding to the states and nothing else. A
// sum of n rows in another order differs by at most n * 2^-53 of the sum of its terms' sizes. A
// state takes the share 1 - keep of that at each update and keeps `keep` of what it had, so 200
// updates leave no more than one. (The largest differences seen are 5 and 4 times 2^-53.)
TEST_CASE("shards: 200 updates leave the states of a norm on the whole batch") {
  constexpr double kBound = 64 * 0x1p-53;
  const Settings still{"train.optimizer=sgd", "train.lr=1e-37", "train.batch=64"};
  for (const char* norm : {"batchnorm", "batchrenorm{r_max=1.2,d_max=0.3}", "pn_v", "powernorm",
                           "powernorm{mode=paper,warmup=3}", "mabn{m=2,warmup=0}"}) {
    CAPTURE(norm);
    const Settings with = still + Settings{fmt::format("model.norm={}", norm)};
    check_close(ShardTrained(with + Settings{"train.shards=5"}, "mnist_mlp", 200),
                ShardTrained(with, "mnist_mlp", 200), kBound);
  }
}

TEST_CASE("shards: so they do with masks" * doctest::test_suite("slow")) {
  constexpr double kBound = 256 * 0x1p-53;  // an update has up to 256 words
  const Settings still{"train.optimizer=sgd", "train.lr=1e-37"};
  for (const char* norm : {"batchnorm", "powernorm"}) {
    CAPTURE(norm);
    const Settings with = still + Settings{fmt::format("model.norm={}", norm)};
    check_close(ShardTrained(with + Settings{"train.shards=5"}, "text_classifier", 200),
                ShardTrained(with, "text_classifier", 200), kBound);
  }
}

// Two shards of equal size: the mean of their means is the batch's.
TEST_CASE("shards: a local running mean moves by the mean over the shards") {
  const Settings sgd{"train.optimizer=sgd", "train.lr=1e-30", "model.norm=batchnorm",
                     "train.statistics=local", "train.batch=32"};
  const ShardTrained two(sgd + Settings{"train.shards=2"}), whole(sgd);
  std::int64_t compared = 0;
  for (const auto& [name, variable] : whole.variables.all()) {
    if (!name.ends_with("running_mean")) continue;
    const Tensor x = two.variables.read(name, true), y = whole.variables.read(name, true);
    for (std::int64_t e = 0; e < x.elements(); ++e, ++compared) {
      CHECK(x.at(e) == doctest::Approx(y.at(e)).epsilon(1e-6));  // only the first layer is linear
    }
    break;
  }
  CHECK(compared > 0);
}

std::string refusal(const Settings& settings, const char* model = "mnist_mlp", int ranks = 1) {
  const test::TempDir temp;
  try {
    train_as(ranks, temp / "run", [&] { return small_job(settings, model); });
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

TEST_CASE("shards: what does not fit them is refused by name") {
  CHECK(refusal({"train.shards=2"}, "mnist_mlp", 3)
            .starts_with("train.shards: expected at least 3, for each of 3 processes takes whole "
                         "shards, got 2"));
  CHECK(refusal({"train.shards=2"}, "char_lm")
            .starts_with("train.shards: expected 1 for a network "
                         "that carries "));
  CHECK_THROWS_AS(small_job({"train.shards=2", "train.embedding_updates=lazy"}), Error);
}

// The test set in nine batches, which no number of ranks below divides.
Evaluation evaluated_by(int ranks, std::int64_t* batches = nullptr) {
  Evaluation result;
  test::run_ranks(ranks, [&](Communicator& all) {
    const Job job = small_job();
    const auto backend = make_backend(default_backend());
    Variables variables(*backend, 1);
    Evaluator evaluator(*backend, variables, job);
    evaluator.share(all);
    std::int64_t own = 0;
    evaluator.tell([&](std::int64_t, std::int64_t) { ++own; });
    const auto rows = job.splits().stream(task::Split::kTest, {.batch = 7, .shard_range = {}});
    const Evaluation mine = evaluator.run(*rows);
    if (all.rank() > 0) return;
    result = mine;
    if (batches) *batches = own;
  });
  return result;
}

TEST_CASE("shards: an evaluation that ranks share has the numbers of one") {
  const Evaluation alone = evaluated_by(1);
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    std::int64_t batches = 0;
    const Evaluation shared = evaluated_by(ranks, &batches);
    CHECK(batches == (9 + ranks - 1) / ranks);
    CHECK(shared.loss == alone.loss);
    CHECK(shared.items == alone.items);
    CHECK(shared.metrics.front().sum == alone.metrics.front().sum);
  }
}

// Ranks with other weights stand for processors that compute otherwise.
TEST_CASE("shards: what each rank evaluates by itself is given out as rank 0 found it") {
  std::vector<Evaluation> found(2);
  test::run_ranks(2, [&](Communicator& all) {
    const Job job = small_job({}, "order_embeddings");  // whose scorer needs all batches
    const auto backend = make_backend(default_backend());
    Variables variables(*backend, std::uint64_t(1 + all.rank()));
    Evaluator evaluator(*backend, variables, job);
    evaluator.share(all);
    found[std::size_t(all.rank())] = evaluator.run(*job.splits().stream(
        task::Split::kValid, {.batch = job.train().batch, .shuffle = {}, .shard_range = {}}));
  });
  CHECK(found[0].loss == found[1].loss);
  for (std::size_t i = 0; i < found[0].metrics.size(); ++i) {
    CHECK(found[0].metrics[i].value == found[1].metrics[i].value);
  }
}

std::string divergence(int ranks, const std::filesystem::path& folder, const MakeJob& make_job) {
  try {
    train_as(ranks, folder, make_job);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kDiverged);
    return error.what();
  }
  return "";
}

TEST_CASE("shards: a value that is not finite is named with its shard, whichever rank has it") {
  const test::TempDir temp;
  const auto make = [] { return test::poisoned({.batches = {3}}, {"train.shards=4"}); };
  const std::string alone = divergence(1, temp / "1", make);
  CHECK(alone.starts_with("step 3: loss nan"));
  CHECK(alone.find("shard 2 of batch 3: image (output 0 of leaf), element 5") != std::string::npos);
  CHECK(divergence(3, temp / "3", make) == alone);
}

TEST_CASE("shards: updates that are not finite are left out alike in any number of ranks") {
  for (const char* action : {"skip", "rollback"}) {
    CAPTURE(action);
    const test::TempDir temp;
    const auto make = [&] {
      return test::poisoned({.batches = {3, 4, 9}}, {"train.shards=4", "train.checkpoint_every=2",
                                                     fmt::format("train.on_nonfinite={}", action)});
    };
    train_as(1, temp / "1", make);
    train_as(3, temp / "3", make);
    check_same_end(temp / "3", temp / "1", 16);
  }
}

}  // namespace
}  // namespace keel::train
