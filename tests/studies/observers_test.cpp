// Observed trainings: they are the bits of unobserved ones, and their lines those of an
// uninterrupted run.
#include "studies/observers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backends/backends.h"
#include "frontend/io/metrics_log.h"
#include "frontend/io/safetensors.h"
#include "studies/statistics_observer.h"
#include "studies/zoo_job.h"
#include "tests/studies/short_run.h"
#include "tests/support/checks.h"
#include "tests/support/same_run.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::study {
namespace {

namespace fs = std::filesystem;
using test::operator+;
using test::Settings;

// Trains as `keel train` does.
train::Summary train_observed_in(const fs::path& folder, const train::Job& job,
                                 bool resume = false) {
  const auto backend = make_backend(default_backend());
  const auto observers = observers_of(job);
  train::RunOptions options{.folder = folder, .resume = resume, .quiet = true};
  for (const auto& observer : observers) options.observers.push_back(observer.get());
  return train::Trainer(*backend, job, options).run();
}

struct ObservedCase {
  std::string task, observe;
  Settings settings = {};
  std::vector<std::string> kinds = {"statistics"};
};

// Every kind, on tasks with dropout, carries, shards and micro-batches among them.
std::vector<ObservedCase> observed_cases() {
  return {
      {"mnist_mlp", "statistics", {"model.norm=batchnorm", "train.log_every=3"}},
      {"mnist_mlp",
       "statistics{every=2u,site=fc2/norm}",
       {"model.norm=pn_v", "train.accumulate=3", "train.batch=8", "train.statistics=local"}},
      {"mnist_mlp",
       "statistics",
       {"model.norm=powernorm{warmup=3}", "train.shards=2", "train.statistics=local"}},
      {"mnist_mlp", "statistics", {"model.norm=batchnorm", "train.shards=3"}},
      {"translation", "statistics", {"model.norm=batchnorm", "model.dropout=0.1"}},
      {"word_lm", "statistics", {"model.norm=powernorm{heads=1,warmup=2}"}},
      {"translation", "statistics", {"model.norm=unifiednorm{filter=false,warmup=2}"}},
      {"translation",
       "gradients{every=2u};singular-values{every=2u};landscape",
       {"model.norm=pn_v", "model.dropout=0.1"},
       {"gradients", "singular-values", "landscape"}},
      {"word_lm",
       "landscape{every=2u};singular-values",
       {"model.norm=layernorm"},
       {"landscape", "singular-values"}},
      {"mnist_mlp", "landscape{every=2u}", {"train.shards=2"}, {"landscape"}},
      {"mnist_cnn",
       "gradients",
       {"model.norm=layernorm", "train.shards=2", "train.statistics=local"},
       {"gradients"}},
  };
}

std::map<std::string, Tensor> weights_in(const fs::path& file) {
  return io::read_safetensors(file).tensors;
}

void check_same_weights(const fs::path& a, const fs::path& b) {
  const auto left = weights_in(a), right = weights_in(b);
  REQUIRE(left.size() == right.size());
  for (const auto& [name, value] : left) {
    CAPTURE(name);
    const Tensor& other = right.at(name);
    REQUIRE(value.shape() == other.shape());
    REQUIRE(value.bytes() == other.bytes());
    CHECK(std::equal(value.data(), value.data() + value.bytes(), other.data()));
  }
}

TEST_CASE("observers: an observed training has the weights of one that nobody looks at") {
  for (const ObservedCase& one : observed_cases()) {
    CAPTURE(one.task);
    CAPTURE(one.observe);
    const test::TempDir temp;
    const Settings settings = one.settings + Settings{"train.max_steps=6"};
    test::train_in(temp / "alone", test::small_job(settings, one.task));
    train_observed_in(
        temp / "seen",
        test::small_job(settings + Settings{"train.observe=" + one.observe}, one.task));
    check_same_weights(test::step_file(temp / "seen", 6), test::step_file(temp / "alone", 6));
    CHECK(test::timeless_metrics(temp / "seen") == test::timeless_metrics(temp / "alone"));
    for (const std::string& kind : one.kinds) {
      CAPTURE(kind);
      CHECK_FALSE(io::read_metrics(train::RunFolder{temp / "seen"}.observation(kind)).empty());
    }
  }
}

TEST_CASE("observers: a training that goes on writes the lines of one that was never interrupted") {
  for (const ObservedCase& one : observed_cases()) {
    CAPTURE(one.task);
    CAPTURE(one.observe);
    const test::TempDir temp;
    const Settings settings =
        one.settings + Settings{"train.observe=" + one.observe, "train.checkpoint_every=2"};
    const auto until = [&](int steps) {
      return test::small_job(settings + Settings{fmt::format("train.max_steps={}", steps)},
                             one.task);
    };
    train_observed_in(temp / "straight", until(6));
    train_observed_in(temp / "halves", until(5));
    // A crash: the lines after the last checkpoint that is there are written again.
    fs::remove(test::step_file(temp / "halves", 5));
    train_observed_in(temp / "halves", until(6), true);
    for (const std::string& kind : one.kinds) {
      CAPTURE(kind);
      const auto file = [&](const char* run) {
        return train::RunFolder{temp / run}.observation(kind);
      };
      CHECK(test::same_bytes(file("halves"), file("straight")));
    }
    check_same_weights(test::step_file(temp / "halves", 6), test::step_file(temp / "straight", 6));
  }
}

TEST_CASE("observers: the lines have the numbers of the updates that were looked at") {
  const test::TempDir temp;
  train_observed_in(temp.path(),
                    test::small_job({"model.norm=batchnorm", "train.max_steps=7",
                                     "train.observe=statistics{every=3u,site=fc2/norm}"}));
  std::vector<std::int64_t> steps;
  for (const auto& line : io::read_metrics(temp / "observations/statistics.jsonl")) {
    steps.push_back(line.at("step"));
    CHECK(line.at("site") == "fc2/norm");
    CHECK(line.size() == 9);
  }
  CHECK(steps == std::vector<std::int64_t>{1, 4, 7});
}

// The running statistics after an update that keeps nothing are those of its batch.
TEST_CASE("observers: distances are those of the batch from the statistics before it") {
  const test::TempDir temp;
  const auto job = [](int steps) {
    return test::small_job({"model.norm=batchnorm{keep=0}", "train.observe=statistics",
                            "model.batchnorm_options=", "train.checkpoint_every=1",
                            "train.keep_checkpoints=9", fmt::format("train.max_steps={}", steps)});
  };
  train_observed_in(temp.path(), job(3));
  const auto lines = io::read_metrics(temp / "observations/statistics.jsonl");
  REQUIRE(lines.size() == 3);
  for (int step = 2; step <= 3; ++step) {
    const auto before = weights_in(test::step_file(temp.path(), step - 1)),
               after = weights_in(test::step_file(temp.path(), step));
    for (const auto& [state, what] :
         {std::pair{"running_mean", "dist_mu"}, {"running_var", "dist_square"}}) {
      const Tensor &a = after.at(std::string("fc1/norm/") + state),
                   &b = before.at(std::string("fc1/norm/") + state);
      double square = 0;
      for (std::int64_t i = 0; i < a.elements(); ++i) square += std::pow(a.at(i) - b.at(i), 2);
      CHECK(lines[std::size_t(step - 1)].at(what).get<double>() ==
            doctest::Approx(std::sqrt(square) / double(a.elements())).epsilon(1e-4));
    }
  }
}

TEST_CASE("observers: what a task cannot have, and what is none, is refused") {
  const auto refused = [](const std::string& observe, const std::string& words,
                          const Settings& settings = {"model.norm=batchnorm"}) {
    CAPTURE(observe);
    const train::Job job =
        test::small_job(settings + Settings{"train.observe=" + observe}, "mnist_mlp");
    test::check_refused([&] { observers_of(job); }, words);
  };
  refused("statistic", "train.observe: 'statistic' is unknown");
  for (const char* kind : {"statistics", "gradients"}) {
    refused(kind,
            std::string("train.observe: ") + kind +
                ": expected train.accumulate = 1 or train.statistics = local",
            {"model.norm=batchnorm", "train.accumulate=2"});
  }
  refused("statistics{every=0u}", "train.observe: statistics: every: expected at least 1, got 0u");
  refused("statistics{every=soon}", "train.observe: statistics: every: expected epochs or updates");
  refused("statistics{often=1u}", "train.observe: statistics: 'often' is unknown");
  refused("statistics{every}", "train.observe: statistics: expected key=value, got 'every'");
  refused("statistics{every=1u", "train.observe: statistics: expected a closing brace");
  refused("statistics;statistics", "train.observe: expected statistics once, got it twice");
  refused("statistics{site=fc9/norm}", "train.observe: statistics: site: 'fc9/norm' is unknown");
  refused("statistics",
          "train.observe: statistics: model.norm: expected batchnorm, pn_v, powernorm or "
          "unifiednorm, got layernorm",
          {"model.norm=layernorm"});
  refused("statistics",
          "train.observe: statistics: model.norm: expected batchnorm, pn_v, powernorm or "
          "unifiednorm, got none",
          {"model.norm=none"});
  refused("gradients", "train.observe: gradients: expected a network with a norm of activations",
          {"model.norm=weightnorm"});
  refused("singular-values", "train.observe: singular-values: mnist_mlp has no embeddings");
  refused("landscape{site=fc1}", "train.observe: landscape: 'site' is unknown");
  refused("landscape", "train.observe: landscape: expected train.accumulate = 1",
          {"model.norm=batchnorm", "train.accumulate=2"});
  refused("landscape", "train.observe: landscape: expected train.statistics = synchronised",
          {"model.norm=batchnorm", "train.shards=2", "train.statistics=local"});
}

TEST_CASE("observers: the singular values of a run's end are those of its last weights") {
  const test::TempDir temp;
  train_observed_in(
      temp.path(), test::small_job({"train.max_steps=5", "train.observe=singular-values{every=2u}"},
                                   "translation"));
  const auto lines = io::read_metrics(temp / "observations/singular-values.jsonl");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].at("step") == 2);
  CHECK(lines[2].at("step") == 5);
  const auto backend = make_backend(default_backend());
  Options options{*backend};
  options.runs = {test::step_file(temp.path(), 5).string()};
  const Result result = run_small("singular-values", options);
  REQUIRE(result.tables.size() == 3);
  CHECK(result.tables[2].rows.size() == 1 + 3);
  CHECK(result.tables[2].rows[3][4] == result.tables[0].rows[1][2]);
}

TEST_CASE("observers: figure7 shows what every norm did to the gradient") {
  const test::TempDir temp;
  train_observed_in(temp.path(), test::small_job({"model.norm=pn_v", "train.max_steps=4",
                                                  "train.observe=gradients"}));
  const auto lines = io::read_metrics(temp / "observations/gradients.jsonl");
  REQUIRE(lines.size() == 4);
  for (const auto& line : lines) {
    REQUIRE(line.at("norms").size() == 3);
    for (const auto& [site, lengths] : line.at("norms").items()) {
      CHECK(lengths.at("dy").get<double>() > 0);
      CHECK(lengths.at("dx").get<double>() > 0);
    }
  }
  const auto backend = make_backend(default_backend());
  Options options{*backend};
  options.runs = {test::step_file(temp.path(), 4).string()};
  const Result result = run_small("figure7", options);
  REQUIRE(result.tables.size() == 3);
  CHECK(result.tables[2].rows.size() == 1 + 3);
  CHECK(result.tables[2].rows[1][0] == "fc1/norm");
  CHECK(result.tables[2].rows[1][1] == "4");
}

TEST_CASE("observers: keel study landscape takes runs of one recipe") {
  const test::TempDir temp;
  const auto backend = make_backend(default_backend());
  Options options{*backend};
  const auto add_run = [&](const std::string& norm, const Settings& settings = {}) {
    const fs::path folder = temp / fmt::format("{}", options.runs.size());
    train_observed_in(folder, test::small_job(Settings{"model.norm=" + norm, "train.max_steps=6",
                                                       "train.observe=landscape"} +
                                              settings));
    options.runs.push_back(test::step_file(folder, 6).string());
  };
  add_run("none");
  add_run("batchnorm");
  const Result result = run_small("landscape", options);
  CHECK(result.tables.at(0).rows.size() == 1 + 2);
  CHECK(result.tables.at(1).rows.size() == 1 + 2 * 2);
  CHECK(result.checks.size() == 4);
  for (const Check& check : result.checks) CHECK_FALSE(check.judged);
  add_run("layernorm", {"train.lr=0.25"});
  test::check_refused([&] { run_small("landscape", options); },
                      "[landscape] --run: expected runs of one recipe, got train.lr = ");
}

TEST_CASE("observers: a claim that fails in trainings that were cut short stays open") {
  Result result;
  result.above("holds", 2, 1);
  result.above("fails", 0, 1);
  result.not_judged("open", 0, "needs 3 seeds");
  result.leave_open_what_fails();
  CHECK((result.checks[0].judged && result.checks[0].holds));
  CHECK_FALSE(result.checks[1].judged);
  CHECK(result.checks[1].bound == "> 1; not so here, which only trainings to their end refute");
  CHECK(result.checks[2].bound == "needs 3 seeds");
  CHECK(result.holds());
}

TEST_CASE(
    "observers: a run that train.max_steps ended is none to its end, unless a recipe has it") {
  const test::TempDir temp;
  const auto backend = make_backend(default_backend());
  const Options options{*backend};
  const auto whole = [&](const fs::path& folder, const Settings& settings) {
    test::train_in(folder, test::small_job(settings));
    return is_whole(open_run(options, (folder / "checkpoints/best.safetensors").string()));
  };
  CHECK(whole(temp / "epochs", {"train.epochs=1"}));
  CHECK(whole(temp / "early", {"train.epochs=1", "train.max_steps=900"}));
  CHECK_FALSE(whole(temp / "cut", {"train.max_steps=5"}));
  fs::remove(temp / "epochs/result.json");
  CHECK_FALSE(is_whole(open_run(options, (temp / "epochs/checkpoints/best.safetensors").string())));
}

// Seeds of a translation and of pictures, as `keel train --observe statistics` leaves them.
std::vector<std::string> observed_runs(const fs::path& folder, const std::string& task,
                                       const Settings& settings) {
  std::vector<std::string> runs;
  for (int seed = 1; seed <= 3; ++seed) {
    const fs::path run = folder / fmt::format("{}-{}", task, seed);
    train_observed_in(
        run, test::small_job(settings + Settings{fmt::format("train.seed={}", seed),
                                                 "train.max_steps=6", "train.observe=statistics"},
                             task));
    runs.push_back(test::step_file(run, 6).string());
  }
  return runs;
}

TEST_CASE("observers: keel study statistics takes runs, and says no of none that was cut short" *
          doctest::test_suite("slow")) {
  const auto backend = make_backend(default_backend());
  const test::TempDir temp;
  Options options{*backend};
  for (const char* task : {"translation", "cifar_resnet20"}) {
    const auto runs = observed_runs(temp.path(), task, {"model.norm=batchnorm"});
    options.runs.insert(options.runs.end(), runs.begin(), runs.end());
  }
  const Result result = run_small("statistics", options);
  CHECK(result.tables.at(2).rows.size() == 1 + 6 * 6);
  CHECK(result.checks.size() == 10);
  for (const Check& check : result.checks) {
    CAPTURE(check.claim);
    CHECK((!check.judged || check.holds));
  }
  CHECK(result.holds());
  Options twice = options;
  twice.runs.push_back(twice.runs.front());
  test::check_refused([&] { run_small("statistics", twice); },
                      "[statistics] --run: expected runs that differ in task, norm, scaling or "
                      "seed");
  const fs::path other = temp / "other";
  train_observed_in(other, test::small_job({"model.norm=pn_v", "train.max_steps=6", "train.lr=0.5",
                                            "train.observe=statistics"},
                                           "translation"));
  Options mixed = options;
  mixed.runs.push_back(test::step_file(other, 6).string());
  test::check_refused([&] { run_small("statistics", mixed); },
                      "[statistics] --run: expected runs of one recipe, got train.lr = ");
  test::train_in(temp / "blind", test::small_job({"model.norm=batchnorm", "train.max_steps=6"}));
  options.runs = {test::step_file(temp / "blind", 6).string()};
  test::check_refused([&] { run_small("statistics", options); }, (temp / "blind").string(),
                      "expected a run of keel train --observe statistics", ErrorKind::kBadInput);
}

}  // namespace
}  // namespace keel::study
