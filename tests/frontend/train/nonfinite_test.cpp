// Updates that are not finite: stopping, leaving them out, going back; and that resuming changes
// nothing about it.
#include "frontend/train/nonfinite.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "backends/backends.h"
#include "frontend/train/step_graph.h"
#include "frontend/train/step_runner.h"
#include "tests/support/checks.h"
#include "tests/support/poisoned.h"
#include "tests/support/process.h"
#include "tests/support/same_run.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::train {
namespace {

namespace fs = std::filesystem;
using test::operator+;
using test::Overflowing;
using test::poisoned;
using test::Settings;
using test::step_file;
using test::train_in;

constexpr std::int64_t kEpoch = 8;  // batches of 32 in 275 rows

// Trains on all updates but these, and checks that a run's checkpoint of `step` holds the same.
void check_skipped(const Job& job, const std::set<std::int64_t>& skipped, const fs::path& folder,
                   std::int64_t step) {
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  const task::Splits& data = job.splits();
  const auto rows = data.stream(task::Split::kTrain, {.batch = job.train().batch, .shuffle = 1});
  StepRunner runner(*backend, variables, job, *rows);
  StepPlace place;
  for (; place.step < step; ++place.step) {
    if (place.batch == rows->steps(std::uint32_t(place.epoch)))
      place = {place.step, place.epoch + 1};
    if (!skipped.contains(place.step)) runner.start(place);
    runner.drop();
    place.batch += runner.micro_batches(place);
  }
  const io::TensorFile file = io::read_safetensors(step_file(folder, step));
  for (const auto& [name, tensor] : file.tensors) {
    CAPTURE(name);
    if (is_gathered(name)) continue;
    const Tensor value = variables.read(name, true);
    REQUIRE(value.type() == tensor.type());
    CHECK((std::memcmp(value.data(), tensor.data(), std::size_t(value.bytes())) == 0));
  }
}

// The lines about updates that were not finite: (step, action, skipped).
using Event = std::tuple<std::int64_t, std::string, std::int64_t>;
std::vector<Event> events(const fs::path& folder) {
  std::vector<Event> found;
  for (const auto& line : io::read_metrics(folder / "metrics.jsonl")) {
    if (!line.contains("nonfinite")) continue;
    const auto& what = line["nonfinite"];
    CHECK(line.contains("epoch"));
    CHECK(what["loss"].is_null());
    CHECK_FALSE(what["where"].get<std::string>().empty());
    found.emplace_back(line["step"], what["action"], what["skipped"]);
  }
  return found;
}

std::string message_of_divergence(const fs::path& folder, const Job& job, bool resume = false) {
  try {
    train_in(folder, job, resume);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kDiverged);
    return error.what();
  }
  FAIL_CHECK("it did not diverge");
  return {};
}

TEST_CASE("nonfinite: stop names batch, node, element and inputs, and a checkpoint is there") {
  const test::TempDir temp;
  const Job job = poisoned({{3}}, {});
  const std::string message = message_of_divergence(temp.path(), job);
  CHECK(message ==
        "step 3: loss nan, gradient norm nan; first not finite: batch 3: image "
        "(output 0 of leaf), element 5 is nan");
  CHECK(events(temp.path()) == std::vector<Event>{{4, "stop", 0}});
  CHECK(fs::exists(step_file(temp.path(), 0)));
  // Going on from there comes to the same; without the poison it comes to the end.
  CHECK(message_of_divergence(temp.path(), job, true) == message);
  CHECK(train_in(temp.path(), poisoned({}, {}), true).state.step == 2 * kEpoch);
}

TEST_CASE("nonfinite: the node in which a number overflows is named with what it read") {
  const test::TempDir temp;
  const std::string message =
      message_of_divergence(temp.path(), poisoned({{2}, 3e38f}, {"model.norm=none"}));
  CAPTURE(message);
  CHECK(message.find("first not finite: batch 2: ") != std::string::npos);
  CHECK(message.find(", it read ") != std::string::npos);
  CHECK(message.rfind("e+3") > message.find(" up to "));  // what it read is huge
}

TEST_CASE("nonfinite: skip leaves the update out, and nothing else") {
  const struct {
    Settings settings;
    std::set<std::int64_t> batches, steps;
  } rows[] = {
      {{}, {3, 4, 10}, {3, 4, 10}},
      {{"model.norm=batchnorm", "train.clip=global"}, {0, 15}, {0, 15}},
      // The first and the second of two micro-batches of 16 rows, 17 in an epoch.
      {{"model.norm=batchnorm", "train.batch=16", "train.accumulate=2", "train.statistics=local"},
       {4, 9},
       {2, 4}}};
  for (const auto& row : rows) {
    const test::TempDir temp;
    Settings settings = row.settings;
    settings.insert(settings.end(), {"train.on_nonfinite=skip", "train.keep_checkpoints=99"});
    const Summary summary = train_in(temp.path(), poisoned({row.batches}, settings));
    CHECK(summary.state.skipped == std::int64_t(row.steps.size()));
    check_skipped(poisoned({}, row.settings), row.steps, temp.path(), summary.state.step);
    std::vector<Event> expected;
    for (std::int64_t step : row.steps) expected.emplace_back(step + 1, "skip", 1);
    CHECK(events(temp.path()) == expected);
    for (const auto& line : io::read_metrics(temp / "metrics.jsonl")) {
      if (line.contains("split")) CHECK(line["loss"].is_number());
    }
  }
}

TEST_CASE("nonfinite: a loss that overflows is enough to skip, gradients or not") {
  for (const char* batch : {"train.batch=32", "train.batch=16"}) {
    const test::TempDir temp;
    const bool gathers = std::string(batch) == "train.batch=16";
    const Settings settings{batch, gathers ? "train.accumulate=2" : "train.accumulate=1",
                            "model.norm=batchnorm", "train.statistics=local"};
    Settings skip = settings;
    skip.push_back("train.on_nonfinite=skip");
    const Summary summary = train_in(temp.path(), poisoned<Overflowing>({{4}, 1e3f}, skip));
    CHECK(summary.state.skipped == 1);
    const std::int64_t step = gathers ? 2 : 4;
    check_skipped(poisoned<Overflowing>({}, settings), {step}, temp.path(), summary.state.step);
  }
}

TEST_CASE("nonfinite: so many updates in a row and no more are skipped") {
  const test::TempDir temp;
  const Settings settings{"train.on_nonfinite=skip", "train.nonfinite_limit=2"};
  CHECK(train_in(temp / "two", poisoned({{2, 3, 5, 6}}, settings)).state.skipped == 4);
  const Job three = poisoned({{2, 3, 4}}, settings);
  const std::string message = message_of_divergence(temp / "three", three);
  CHECK(message.starts_with("step 4: "));
  CHECK(message.ends_with("; train.nonfinite_limit = 2 is used up"));
  CHECK(events(temp / "three") ==
        std::vector<Event>{{3, "skip", 1}, {4, "skip", 1}, {5, "stop", 0}});
  // The count is not forgotten when the run is interrupted.
  Settings half = settings;
  half.push_back("train.max_steps=4");
  train_in(temp / "halves", poisoned({{2, 3, 4}}, half));
  CHECK(message_of_divergence(temp / "halves", three, true) == message);
}

TEST_CASE("nonfinite: a rollback leaves out all since the last checkpoint") {
  const test::TempDir temp;
  const Settings often{"train.checkpoint_every=3", "train.keep_checkpoints=99"};
  Settings settings = often;
  settings.push_back("train.on_nonfinite=rollback");
  // Checkpoints at 0, 3, 6, 8: batch 4 goes back to 3, batch 7, the last one, to 6, batch 8 to 8.
  const Summary summary = train_in(temp.path(), poisoned({{4, 7, 8}}, settings));
  check_skipped(poisoned({}, often), {3, 4, 6, 7, 8}, temp.path(), summary.state.step);
  CHECK(summary.state.skipped == 5);
  CHECK(summary.state.consecutive_non_finite == 3);
  CHECK(events(temp.path()) ==
        std::vector<Event>{{5, "rollback", 2}, {8, "rollback", 2}, {9, "rollback", 1}});
  CHECK_FALSE(fs::exists(step_file(temp.path(), 0)));
  const std::string message = message_of_divergence(
      temp / "limited", poisoned({{4, 7, 8}}, settings + Settings{"train.nonfinite_limit=2"}));
  CHECK(message.starts_with("step 8: "));
  CHECK(message.ends_with("; train.nonfinite_limit = 2 is used up"));
}

TEST_CASE("nonfinite: an epoch that is left out as a whole has no mean loss") {
  const test::TempDir temp;
  const Summary summary =
      train_in(temp.path(), poisoned({{kEpoch - 1}}, {"train.on_nonfinite=rollback"}));
  CHECK(summary.state.skipped == kEpoch);
  CHECK(summary.state.step == 2 * kEpoch);
  std::vector<bool> has_loss;
  for (const auto& line : io::read_metrics(temp / "metrics.jsonl")) {
    if (line.value("split", "") == "train") has_loss.push_back(line["loss"].is_number());
  }
  CHECK(has_loss == std::vector<bool>{false, true});
}

TEST_CASE("nonfinite: wherever a run is interrupted, it ends the same" *
          doctest::test_suite("slow")) {
  const std::set<std::int64_t> batches{2, 4, 5, 11};
  for (const char* policy : {"skip", "rollback"}) {
    CAPTURE(std::string(policy));
    const Settings settings{"train.on_nonfinite=" + std::string(policy), "model.norm=batchnorm",
                            "train.checkpoint_every=3", "train.keep_checkpoints=1",
                            "train.log_every=1"};
    const test::TempDir temp;
    train_in(temp / "straight", poisoned({batches}, settings));
    CHECK(events(temp / "straight").size() >= 3);
    for (std::int64_t stop = 1; stop < 2 * kEpoch; ++stop) {
      CAPTURE(stop);
      const fs::path folder = temp / fmt::format("stop{}", stop);
      const Settings until{fmt::format("train.max_steps={}", stop)};
      try {
        train_in(folder, poisoned({batches}, settings + until));
      } catch (const Error& error) {  // all of its few updates were left out
        CHECK(error.kind() == ErrorKind::kDiverged);
      }
      train_in(folder, poisoned({batches}, settings), true);
      test::check_same_end(folder, temp / "straight", 2 * kEpoch);
    }
  }
}

TEST_CASE("nonfinite: a run whose updates were all left out has no result") {
  for (const char* policy : {"skip", "rollback"}) {
    CAPTURE(std::string(policy));
    const test::TempDir temp;
    const Settings settings{"train.on_nonfinite=" + std::string(policy), "train.max_steps=3"};
    const std::string message = message_of_divergence(temp.path(), poisoned({{0, 1, 2}}, settings));
    CHECK(message == "all 3 updates were left out: the weights are the first ones");
    const std::string result = test::read_bytes(RunFolder{temp.path()}.result());
    CHECK(result.find("\"diverged\"") != std::string::npos);
  }
  const test::TempDir temp;
  const Settings skip{"train.on_nonfinite=skip", "train.max_steps=3"};
  CHECK(train_in(temp.path(), poisoned({{0, 2}}, skip)).state.skipped == 2);
}

// The weights of a deep network without a norm may be finite while its outputs overflow.
TEST_CASE("nonfinite: a run whose evaluation is not finite has no result") {
  const test::TempDir temp;
  const Settings settings{"train.max_steps=1", "train.optimizer=sgd", "train.lr=9e5",
                          "model.norm=none", "train.on_nonfinite=skip"};
  const auto result = test::run_keel(test::small_train(temp / "run", settings, "deep_linear"));
  CHECK(result.code == 6);
  CHECK(result.err.find("the loss of the last weights on the validation set is ") !=
        std::string::npos);
  CHECK(result.out.empty());
  const auto again = test::run_keel({"train", "--quiet", "--resume", (temp / "run").string()});
  CHECK(again.code == 6);
  const auto eval = test::run_keel({"eval", (temp / "run/checkpoints/best.safetensors").string()});
  CHECK(eval.code == 6);
  CHECK(eval.err.find("eval: the loss is ") != std::string::npos);
}

TEST_CASE("nonfinite: the program takes the choice, also when it goes on with a run") {
  const test::TempDir temp;
  const std::string folder = temp / "run";
  Settings arguments =
      test::small_train(folder, {"train.optimizer=sgd", "train.lr=9e5", "train.weight_decay=1e37"});
  const auto stopped = test::run_keel(arguments);
  CHECK(stopped.code == 6);
  CHECK(stopped.err.find("first not finite: batch ") != std::string::npos);
  for (const char* policy : {"skip", "rollback"}) {
    const auto more =
        test::run_keel({"train", "--quiet", "--resume", folder, "--on-nonfinite", policy});
    CHECK(more.code == 6);
    CHECK(more.err.find("train.nonfinite_limit = 10 is used up") != std::string::npos);
  }
  arguments = test::small_train(temp / "other");
  arguments.insert(arguments.end(), {"--on-nonfinite", "ignore"});
  const auto refused = test::run_keel(arguments);
  CHECK(refused.code == 2);
  CHECK(refused.err.find("expected stop, skip or rollback, got 'ignore'") != std::string::npos);
}

}  // namespace
}  // namespace keel::train
