// Whole runs in miniature: learning, stopping, what is kept, what is written, and divergence.
#include "frontend/train/trainer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "backends/backends.h"
#include "tests/support/checks.h"
#include "tests/support/fault.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::train {
namespace {

namespace fs = std::filesystem;
using test::small_job;
using test::step_file;
using test::train_in;

// 275 rows in batches of 32.
constexpr std::int64_t kStepsPerEpoch = 8;

std::vector<std::string> checkpoint_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints")) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

TEST_CASE("trainer: the loss falls on the built-in digits" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const Job job =
      small_job({"data.source=builtin", "data.train_rows=2000", "train.epochs=3", "train.lr=1e-2"});
  const Summary summary = train_in(temp / "run", job);
  CHECK(summary.state.epoch == 3);
  CHECK(summary.state.step == 3 * (2000 / 32));
  CHECK(summary.test.rows == 2000);
  CHECK(summary.test.at("error") < 35);
  const auto lines = io::read_metrics(temp / "run/metrics.jsonl");
  std::vector<double> losses;
  for (const auto& line : lines) {
    if (line.value("split", "") == "train") losses.push_back(line["loss"]);
  }
  REQUIRE(losses.size() == 3);
  CHECK(losses[1] < 0.8 * losses[0]);
  CHECK(losses[2] < losses[1]);
  CHECK(summary.train_loss == losses[2]);
}

TEST_CASE("trainer: first values from data are there before the first step") {
  const test::TempDir temp;
  // Both epochs are one step on the same rows, and the steps change nothing.
  train_in(temp.path(), small_job({"model.norm=weightnorm", "data.train_rows=32", "train.epochs=2",
                                   "train.lr=1e-20"}));
  std::vector<double> losses;
  for (const auto& line : io::read_metrics(temp / "metrics.jsonl")) {
    if (line.value("split", "") == "train") losses.push_back(line["loss"]);
  }
  REQUIRE(losses.size() == 2);
  CHECK(losses[0] == doctest::Approx(losses[1]).epsilon(1e-6));
  const io::TensorFile file = io::read_safetensors(step_file(temp.path(), 2));
  for (const char* layer : {"fc1", "fc2"}) {
    const Tensor& gain = file.tensors.at(std::string(layer) + "/norm/gain");
    for (std::int64_t e = 0; e < gain.elements(); ++e) CHECK(std::abs(gain.at(e) - 1) > 1e-3);
  }
}

TEST_CASE("trainer: the last checkpoints and the best are kept") {
  const test::TempDir temp;
  const Job job = small_job({"train.epochs=4", "train.keep_checkpoints=2", "train.lr=1e-2"});
  const Summary summary = train_in(temp.path(), job);
  using Names = std::vector<std::string>;
  CHECK(checkpoint_names(temp.path()) ==
        Names{"best.safetensors", "step-00000024.safetensors", "step-00000032.safetensors"});
  const io::TensorFile best = io::read_safetensors(temp / "checkpoints/best.safetensors");
  CHECK(best.metadata.at("step") == fmt::format("{}", summary.state.best_step));
  REQUIRE(summary.best_test.has_value());
  double best_error = 100;
  for (const auto& line : io::read_metrics(temp / "metrics.jsonl")) {
    if (line.value("split", "") == "valid") {
      best_error = std::min(best_error, line["error"].get<double>());
    }
  }
  CHECK(summary.state.best == best_error);
}

TEST_CASE("trainer: checkpoints between epochs when asked for") {
  const test::TempDir temp;
  train_in(temp.path(), small_job({"train.max_steps=7", "train.checkpoint_every=3"}));
  CHECK(checkpoint_names(temp.path()).size() == 4);  // and the best
  for (std::int64_t step : {3, 6, 7}) CHECK(fs::exists(step_file(temp.path(), step)));
}

TEST_CASE("trainer: validates every N updates, and measures the last weights in any case") {
  const test::TempDir temp;
  const Summary summary =
      train_in(temp.path(), small_job({"train.max_steps=14", "train.eval_every=5u"}));
  std::vector<std::int64_t> steps;
  for (const auto& line : io::read_metrics(temp / "metrics.jsonl")) {
    if (line.value("split", "") == "valid") steps.push_back(line["step"]);
  }
  CHECK(steps == std::vector<std::int64_t>{5, 10});
  CHECK(summary.state.best_step > 0);
  CHECK(summary.valid.rows == 25);
  const Summary never =
      train_in(temp / "never", small_job({"train.max_steps=3", "train.eval_every=5u"}));
  CHECK(never.state.best_step == -1);
  CHECK(never.best_test->loss == never.test.loss);
  CHECK(fs::exists(temp / "never/checkpoints/best.safetensors"));
}

TEST_CASE("trainer: a run says when the last weights are better than the best that count") {
  const test::TempDir temp;
  const test::Settings settings{"train.lr=1e-3", "train.epochs=4"};
  using test::operator+;
  train_in(temp / "each", small_job(settings + test::Settings{"train.eval_every=1u"}));
  std::vector<double> errors{100};  // after each update
  for (const auto& line : io::read_metrics(temp / "each/metrics.jsonl")) {
    if (line.value("split", "") == "valid") errors.push_back(line["error"]);
  }
  int better = 0, worse = 0;
  for (std::size_t step = 2; step < errors.size() && std::min(better, worse) == 0; ++step) {
    const bool is_better = errors[step] < errors[step - 1];
    if ((is_better ? better : worse)++ > 0) continue;
    // The validation before the last update is the only one that is due.
    const Summary summary = train_in(
        temp / fmt::format("{}", step),
        small_job(settings + test::Settings{fmt::format("train.max_steps={}", step),
                                            fmt::format("train.eval_every={}u", step - 1)}));
    CHECK(summary.last_is_better == is_better);
    CHECK(summary.state.best_step == std::int64_t(step) - 1);
    CHECK(summary.valid.at("error") == errors[step]);
  }
  CHECK(better > 0);
  CHECK(worse > 0);
}

TEST_CASE("trainer: stops early when nothing gets better") {
  const test::TempDir temp;
  const Summary summary =
      train_in(temp.path(), small_job({"train.epochs=50", "train.lr=1e-20", "train.patience=2"}));
  CHECK(summary.stopped_because == "no better valid error in 2 evaluations (train.patience = 2)");
  CHECK(summary.state.epoch == 3);
  CHECK(summary.state.best_step == kStepsPerEpoch);
}

TEST_CASE("trainer: stops when the rate has fallen far enough, but not in the warm-up") {
  const test::TempDir temp;
  const test::Settings settings{"train.epochs=50",
                                "train.lr=1e-3",
                                "train.schedule=inverse_sqrt",
                                "train.warmup=10",
                                "train.warmup_init_lr=1e-7",
                                "train.stop_min_lr=5e-4"};
  const Summary summary = train_in(temp.path(), small_job(settings));
  CHECK(summary.stopped_because ==
        "the learning rate has fallen to 0.0005 (train.stop_min_lr = 0.0005)");
  CHECK(summary.state.step == 40);  // the rate of that update would be lr sqrt(10 / 40)
  CHECK(train_in(temp.path(), small_job(settings), true).state.step == 40);
}

TEST_CASE("trainer: what would stop a run early does not, where it ends anyway") {
  const test::TempDir temp;
  const Summary summary =
      train_in(temp.path(), small_job({"train.epochs=3", "train.lr=1e-20", "train.patience=2"}));
  CHECK(summary.state.epoch == 3);
  CHECK(summary.stopped_because.empty());
}

TEST_CASE("trainer: a training loss is known once an epoch is over") {
  const test::TempDir temp;
  CHECK(std::isnan(train_in(temp.path(), small_job({"train.max_steps=7"})).train_loss));
  const Summary summary = train_in(temp.path(), small_job({"train.max_steps=12"}), true);
  CHECK(summary.train_loss > 0);
}

TEST_CASE("trainer: TensorBoard gets settings, what the run came to and how it ended") {
  const test::TempDir temp;
  const auto bytes_of_events = [&](const std::string& run) {
    std::string bytes;
    for (const auto& entry : fs::directory_iterator(temp / run)) {
      const bool is_of_events = entry.path().filename().string().starts_with("events.out.tfevents");
      if (is_of_events) bytes += test::read_bytes(entry.path());
    }
    return bytes;
  };
  train_in(temp / "run", small_job({"train.epochs=2", "train.average_last=2"}));
  const std::string bytes = bytes_of_events("run");
  for (const char* part : {"_hparams_/session_start_info", "model.norm", "test/error",
                           "test_best/error", "test_averaged/loss"}) {
    CAPTURE(std::string(part));
    CHECK(bytes.find(part) != std::string::npos);
  }
  const auto ends = [](bool well) {
    return std::string("\x22\x0b\x08") + (well ? '\x01' : '\x02');  // session_end_info: status
  };
  CHECK(bytes.find(ends(true)) != std::string::npos);
  CHECK_THROWS_AS(train_in(temp / "diverged", small_job({"train.optimizer=sgd", "train.lr=9e5",
                                                         "train.weight_decay=1e37"})),
                  Error);
  CHECK(bytes_of_events("diverged").find(ends(false)) != std::string::npos);
}

TEST_CASE("trainer: patience counts evaluations, not epochs") {
  const test::TempDir temp;
  const Summary summary = train_in(
      temp.path(),
      small_job({"train.epochs=50", "train.lr=1e-20", "train.patience=1", "train.eval_every=2e"}));
  CHECK(summary.state.epoch == 4);
}

TEST_CASE("trainer: the average of the last checkpoints") {
  const test::TempDir temp;
  const Summary summary =
      train_in(temp.path(), small_job({"train.epochs=4", "train.average_last=2", "train.lr=1e-2",
                                       "model.norm=batchnorm"}));
  REQUIRE(summary.average_test.has_value());
  const io::TensorFile average = io::read_safetensors(temp / "average.safetensors"),
                       last = io::read_safetensors(step_file(temp.path(), 4 * kStepsPerEpoch)),
                       former = io::read_safetensors(step_file(temp.path(), 3 * kStepsPerEpoch));
  for (const char* name : {"fc2/weight", "fc2/norm/gain", "fc2/norm/running_var"}) {
    CAPTURE(std::string(name));
    const Tensor &a = last.tensors.at(name), &b = former.tensors.at(name);
    CHECK(a.at(3) != b.at(3));
    for (std::int64_t e = 0; e < a.shape().elements(); ++e) {
      const double mean = (a.at(e) + b.at(e)) / 2;
      CHECK(average.tensors.at(name).at(e) == doctest::Approx(mean).epsilon(1e-6));
    }
  }
  CHECK(average.metadata.at("average_of") ==
        fmt::format("step-{:08} step-{:08}", 4 * kStepsPerEpoch, 3 * kStepsPerEpoch));
}

TEST_CASE("trainer: metrics hold steps, epochs and tests, in order") {
  const test::TempDir temp;
  const Job job = small_job({"train.epochs=4", "train.log_every=5", "train.test_every=2e",
                             "train.schedule=inverse_sqrt"});
  train_in(temp.path(), job);
  std::map<std::string, std::vector<std::int64_t>> steps;
  std::int64_t former = 0;
  for (const auto& line : io::read_metrics(temp / "metrics.jsonl")) {
    const std::int64_t step = line["step"];
    CHECK(step >= former);
    former = step;
    steps[line.value("split", "step")].push_back(step);
    for (const auto& [key, value] : line.items()) {
      if (key != "split") CHECK(std::isfinite(value.get<double>()));
    }
    if (line.contains("lr")) {
      CHECK(line["lr"].get<double>() == doctest::Approx(1e-3 / std::sqrt(double(step))));
      CHECK(line["grad_norm"].get<double>() > 0);
    }
  }
  using Steps = std::vector<std::int64_t>;
  CHECK(steps["step"] == Steps{5, 10, 15, 20, 25, 30});
  CHECK(steps["train"] == Steps{8, 16, 24, 32});
  CHECK(steps["valid"] == Steps{8, 16, 24, 32});
  CHECK(steps["test"] == Steps{16, 32});
}

TEST_CASE("trainer: the folder tells the whole recipe") {
  const test::TempDir temp;
  const Job job = small_job({"train.max_steps=1", "model.norm=layernorm_simple"});
  train_in(temp.path(), job);
  Config again = test::small_config();
  again.apply_toml(test::read_bytes(temp / "config.toml"), "config.toml");
  CHECK(again.to_toml() == job.config().to_toml());
  CHECK(fs::exists(temp / "loss.svg"));
  CHECK(fs::exists(temp / "error.svg"));
}

TEST_CASE("trainer: gathered micro-batches make one update") {
  const test::TempDir temp;
  const Summary summary =
      train_in(temp.path(), small_job({"train.epochs=2", "train.batch=16", "train.accumulate=4"}));
  // 17 micro-batches an epoch: four updates of four, and one of the one that is left.
  CHECK(summary.state.step == 2 * 5);
}

TEST_CASE("trainer: an epoch's loss is that of its rows, whatever updates they came in") {
  const test::TempDir temp;
  // Four updates of 64 rows and one of 16, which leave 3 out.
  train_in(temp.path(), small_job({"train.epochs=1", "train.batch=16", "train.accumulate=4",
                                   "train.log_every=1", "train.lr=1e-2"}));
  std::vector<double> losses;
  double epoch = 0;
  for (const auto& line : io::read_metrics(temp / "metrics.jsonl")) {
    if (line.contains("lr")) losses.push_back(line["loss"]);
    if (line.value("split", "") == "train") epoch = line["loss"];
  }
  REQUIRE(losses.size() == 5);
  double sum = 16 * losses[4];
  for (std::size_t i = 0; i < 4; ++i) sum += 64 * losses[i];
  CHECK(epoch == doctest::Approx(sum / 272).epsilon(1e-6));
  CHECK(epoch != doctest::Approx(std::reduce(losses.begin(), losses.end()) / 5).epsilon(1e-4));
}

// A weight decay that multiplies every weight by a huge number.
const test::Settings kDiverging{"train.optimizer=sgd", "train.lr=9e5", "train.weight_decay=1e37",
                                "train.epochs=9"};

TEST_CASE("trainer: divergence names a node and keeps the checkpoints") {
  const test::TempDir temp;
  train_in(temp.path(), small_job({"train.optimizer=sgd", "train.max_steps=3"}));
  const std::string before = test::read_bytes(step_file(temp.path(), 3));
  std::string message;
  try {
    train_in(temp.path(), small_job(kDiverging), true);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kDiverged);
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.starts_with("step "));
  const std::size_t at = message.find("first not finite: ");
  REQUIRE(at != std::string::npos);
  CHECK(message.find('/', at) != std::string::npos);
  CHECK(message.find("element ", at) != std::string::npos);
  CHECK((test::read_bytes(step_file(temp.path(), 3)) == before));
  CHECK(checkpoint_names(temp.path()).size() == 2);  // and the best
}

TEST_CASE("trainer: data that do not fit are refused before anything is written") {
  const test::TempDir temp;
  const auto refused = [&](const test::Settings& settings, std::string_view part) {
    test::check_refused([&] { train_in(temp / "run", small_job(settings)); }, "", part);
    CHECK_FALSE(fs::exists(temp / "run"));
  };
  refused({"train.batch=276"}, "batch");
}

TEST_CASE("trainer: a full disk at any call of a save loses nothing") {
  const test::TempDir temp;
  const Job half = small_job({"train.max_steps=2"}), whole = small_job({"train.max_steps=4"});
  train_in(temp / "straight", whole);
  const std::string expected = test::read_bytes(step_file(temp / "straight", 4));
  for (int at : {0, 1, 4, 8, 10, 12, 14, 16}) {
    CAPTURE(at);
    const fs::path folder = temp / fmt::format("run{}", at);
    train_in(folder, half);
    const std::string before = test::read_bytes(step_file(folder, 2));
    {
      const test::FaultGuard full({.at = at, .error = ENOSPC, .lasting = true});
      test::check_refused([&] { train_in(folder, whole, true); }, "[file]", "", ErrorKind::kIo);
    }
    CHECK((test::read_bytes(step_file(folder, 2)) == before));
    train_in(folder, whole, true);
    CHECK((test::read_bytes(step_file(folder, 4)) == expected));
  }
}

}  // namespace
}  // namespace keel::train
