// Norms over the batch whose statistics the micro-batches of an update share: the update is to the
// bit that of one batch, whatever is in memory at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/backends.h"
#include "backends/reference/backend.h"
#include "frontend/train/shard_graph.h"
#include "frontend/train/shard_runner.h"
#include "frontend/train/trainer.h"
#include "tests/support/poisoned.h"
#include "tests/support/same_run.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thread_ranks.h"

namespace keel::train {
namespace {

using test::Settings;
using test::small_job;
using test::operator+;

// Some updates of a job: what they leave, and the memory that they took.
struct MicroTrained {
  std::map<std::string, Tensor> values;
  std::vector<double> losses, norms;

  MicroTrained(Backend& backend, const Settings& settings, const char* model,
               std::int64_t at_once = 0, std::int64_t updates = 3) {
    const Job job = small_job(settings, model);
    Variables variables(backend, 1);
    OneRank one;
    const auto rows = job.splits().stream(
        task::Split::kTrain, {.batch = job.train().batch, .shuffle = 1, .shard_range = {}});
    const auto steps = make_steps(backend, variables, job, *rows, {one, {}, at_once});
    steps->initialize();
    StepPlace place;
    for (; place.step < updates; ++place.step) {
      steps->start(place);
      const StepResult& result = *steps->next(true);
      losses.push_back(result.loss);
      norms.push_back(result.grad_norm);
      place.batch += result.micro_batches;
      if (place.batch >= rows->steps(std::uint32_t(place.epoch))) {
        place.batch = 0;
        ++place.epoch;
      }
    }
    for (const auto& [name, variable] : variables.all()) {
      values.emplace(name, variables.read(name, true));
    }
  }
};

void check_same_bits(const MicroTrained& a, const MicroTrained& b) {
  CHECK(a.losses == b.losses);
  CHECK(a.norms == b.norms);
  REQUIRE(a.values.size() == b.values.size());
  for (const auto& [name, x] : a.values) {
    CAPTURE(name);
    const Tensor& y = b.values.at(name);
    REQUIRE(x.bytes() == y.bytes());
    CHECK(std::memcmp(x.data(), y.data(), std::size_t(x.bytes())) == 0);
  }
}

// As many shards at once as there are, fewer, unequal numbers of them, and each by itself.
void check_at_once(Backend& backend, const Settings& settings, const char* model) {
  CAPTURE(model);
  const MicroTrained all(backend, settings, model, 8);
  for (const std::int64_t at_once : {1, 3, 4}) {
    CAPTURE(at_once);
    check_same_bits(MicroTrained(backend, settings, model, at_once), all);
  }
}

TEST_CASE("micro-batches: no bit depends on how many shards are in memory at once") {
  const auto backend = make_backend(default_backend());
  for (const char* norm :
       {"batchnorm", "pn_v", "powernorm", "powernorm{mode=paper,warmup=2}", "mabn{m=2,warmup=0}",
        "unifiednorm{m=2,warmup=0}", "batchrenorm{r_max=1.2,d_max=0.3}"}) {
    CAPTURE(norm);
    check_at_once(*backend, {"train.shards=8", fmt::format("model.norm={}", norm)}, "mnist_mlp");
  }
  check_at_once(*backend, {"train.shards=8", "model.norm=batchnorm", "train.clip=global"},
                "cifar_resnet20");
}

// With masks, dropout, layers that share a table, and shards without a row.
TEST_CASE("micro-batches: so it is with text" * doctest::test_suite("slow")) {
  const auto backend = make_backend(default_backend());
  for (const char* norm : {"batchnorm", "pn_v", "powernorm", "powernorm{mode=paper,warmup=2}"}) {
    CAPTURE(norm);
    const Settings with{"train.shards=8", fmt::format("model.norm={}", norm)};
    check_at_once(*backend, with, "translation");
    check_at_once(*backend, with + Settings{"model.sites=encoder"}, "translation");
    check_at_once(*backend, with + Settings{"train.batch=64"}, "text_classifier");
  }
}

TEST_CASE("micro-batches: so it is on the reference, and in micro-batches of shards") {
  reference::ReferenceBackend backend;
  const Settings two{"train.batch=16", "train.accumulate=4", "train.shards=2"};
  check_at_once(backend, two + Settings{"model.norm=batchnorm"}, "mnist_mlp");
  check_at_once(backend, two + Settings{"model.norm=powernorm"}, "mnist_mlp");
}

// The same rows in the same pieces. 275 rows are eight updates of 32 rows and a shorter one of each
// epoch, which is left out.
void check_same_pieces(const char* model, const char* norm, std::int64_t rows) {
  CAPTURE(model);
  CAPTURE(norm);
  const auto backend = make_backend(default_backend());
  const auto with = [&](std::int64_t accumulate) {
    return Settings{fmt::format("train.batch={}", rows / accumulate),
                    fmt::format("train.accumulate={}", accumulate),
                    fmt::format("train.shards={}", 8 / accumulate),
                    fmt::format("model.norm={}", norm)};
  };
  const MicroTrained one_batch(*backend, with(1), model);
  for (const std::int64_t accumulate : {2, 4, 8}) {
    CAPTURE(accumulate);
    check_same_bits(MicroTrained(*backend, with(accumulate), model), one_batch);
  }
}

TEST_CASE("micro-batches: an update of several is to the bit that of one batch") {
  for (const char* norm :
       {"batchnorm", "pn_v", "powernorm", "mabn{m=2,warmup=0}", "unifiednorm{m=2,warmup=0}"}) {
    check_same_pieces("mnist_mlp", norm, 32);
  }
  check_same_pieces("cifar_resnet20", "batchnorm", 16);
}

// Pieces of 12 and of 13 rows.
TEST_CASE("micro-batches: so it is where the pieces are unequal") {
  const auto backend = make_backend(default_backend());
  const Settings norm{"model.norm=batchnorm"};
  check_same_bits(
      MicroTrained(*backend,
                   norm + Settings{"train.batch=25", "train.accumulate=4", "train.shards=2"},
                   "mnist_mlp", 0, 2),
      MicroTrained(*backend, norm + Settings{"train.batch=100", "train.shards=8"}, "mnist_mlp", 0,
                   2));
}

void check_near(const MicroTrained& a, const MicroTrained& b) {
  REQUIRE(a.values.size() == b.values.size());
  for (const auto& [name, x] : a.values) {
    CAPTURE(name);
    const Tensor& y = b.values.at(name);
    double difference = 0, size = 0;
    for (std::int64_t e = 0; e < x.elements(); ++e) {
      difference = std::max(difference, std::abs(x.at(e) - y.at(e)));
      size = std::max(size, std::abs(x.at(e)));
    }
    // The bias of an attention's keys has the gradient 0, of which only rounding is left.
    CHECK(difference <= 1e-9 * std::max(size, 1e-6));
  }
}

// In float64 and up to its rounding, in which sums over the rows of one graph have another order.
TEST_CASE("micro-batches: the statistics are those of all rows") {
  reference::ReferenceBackend backend;
  const Settings sgd{"train.optimizer=sgd", "train.lr=0.1"};
  for (const char* norm : {"batchnorm", "pn_v", "powernorm"}) {
    CAPTURE(norm);
    const Settings with = sgd + Settings{fmt::format("model.norm={}", norm)};
    check_near(MicroTrained(backend, with + Settings{"train.batch=64"}, "mnist_mlp"),
               MicroTrained(backend, with + Settings{"train.batch=16", "train.accumulate=4"},
                            "mnist_mlp"));
  }
}

// The table of both languages and of the logits has a gradient before the first norm and after it.
TEST_CASE("micro-batches: the terms of a table's gradient are summed one by one") {
  reference::ReferenceBackend backend;
  const Settings sgd{"train.optimizer=sgd", "train.lr=0.1", "model.norm=batchnorm"};
  const Job job = small_job(sgd + Settings{"train.shards=3"}, "translation");
  const Graph shard = build_shard(job, job.network().sizes(job.train().batch), nullptr);
  const auto terms = [&](std::string_view end) {
    return std::ranges::count_if(
        shard.outputs(), [&](const NamedValue& output) { return output.name.ends_with(end); });
  };
  CHECK(terms("+1") == 1);
  check_near(MicroTrained(backend, sgd, "translation", 0, 2),
             MicroTrained(backend, sgd + Settings{"train.shards=3"}, "translation", 1, 2));
}

// A part of a run: up to `steps` updates.
struct MicroRun {
  int ranks = 1;
  std::int64_t at_once = 0, steps = 0;
};

void train_micro(const std::filesystem::path& folder, const Settings& settings, const MicroRun& run,
                 bool resume = false) {
  test::run_ranks(run.ranks, [&](Communicator& all) {
    const Job job =
        small_job(settings + Settings{fmt::format("train.max_steps={}", run.steps)}, "mnist_mlp");
    const auto backend = make_backend(default_backend());
    RunOptions options{.folder = folder, .resume = resume, .quiet = true, .facts = {}};
    options.ranks = &all;
    options.at_once = run.at_once;
    Trainer(*backend, job, options).run();
  });
}

// An epoch's last update has fewer micro-batches.
TEST_CASE("micro-batches: other ranks and another number at once resume, and nothing changes") {
  const test::TempDir temp;
  const Settings settings{"train.batch=20",       "train.accumulate=3", "train.shards=5",
                          "model.norm=batchnorm", "train.log_every=1",  "train.clip=global"};
  train_micro(temp / "straight", settings, {1, 15, 17});
  train_micro(temp / "moved", settings, {1, 1, 4});
  train_micro(temp / "moved", settings, {3, 0, 9}, true);
  train_micro(temp / "moved", settings, {2, 4, 17}, true);
  test::check_same_end(temp / "moved", temp / "straight", 17);
}

TEST_CASE("micro-batches: a norm keeps its inputs, and little else is in memory") {
  const Job job =
      small_job({"train.shards=8", "train.batch=64", "model.norm=batchnorm"}, "cifar_resnet20");
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  const Graph graph = build_shard(job, job.network().sizes(8), nullptr);
  const Program whole(*backend, variables, graph);
  const Program turns(*backend, variables, graph, {.recompute_before = "loss"});
  CHECK(turns.plan().arena_bytes < whole.plan().arena_bytes);
  CHECK(turns.kept_bytes() < whole.kept_bytes());
}

std::string micro_refusal(const Settings& settings, const char* model) {
  const test::TempDir temp;
  try {
    test::train_in(temp / "run", small_job(settings, model));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

TEST_CASE("micro-batches: networks that cannot share their statistics are refused by name") {
  CHECK(micro_refusal({"train.accumulate=2", "model.norm=batchnorm"}, "char_lm")
            .starts_with("train.statistics: expected local with train.accumulate = 2 for a network "
                         "with norms over the batch that carries "));
  CHECK(micro_refusal({"train.accumulate=2", "model.norm=batchnorm"}, "attentive_reader")
            .starts_with("train.statistics: expected local for a network whose norms over the "
                         "batch are more in a longer batch"));
}

TEST_CASE("micro-batches: with local statistics each is normalized by itself, as ever") {
  const Settings local{"train.batch=16", "train.accumulate=2", "train.statistics=local"};
  const auto backend = make_backend(default_backend());
  const MicroTrained synchronised(
      *backend, {"train.batch=16", "train.accumulate=2", "model.norm=batchnorm"}, "mnist_mlp");
  const MicroTrained apart(*backend, local + Settings{"model.norm=batchnorm"}, "mnist_mlp");
  CHECK(synchronised.losses[0] != apart.losses[0]);
  const MicroTrained plain(*backend, {"train.batch=16", "train.accumulate=2"}, "mnist_mlp");
  const MicroTrained plain_local(*backend, local, "mnist_mlp");
  check_same_bits(plain, plain_local);
}

TEST_CASE("micro-batches: a value that is not finite is named with its batch") {
  const test::TempDir temp;
  const Settings settings{"train.accumulate=2", "model.norm=batchnorm"};
  try {
    test::train_in(temp / "run", test::poisoned({.batches = {3}}, settings));
    CHECK(false);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kDiverged);
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(what.starts_with("step 1: loss nan"));
    CHECK(what.find("batch 3: image (output 0 of leaf), element 5") != std::string::npos);
  }
}

}  // namespace
}  // namespace keel::train
