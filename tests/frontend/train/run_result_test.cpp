// The result.json of a run that ended; a run that has not ended has none.
#include "frontend/train/run_result.h"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "backends/backends.h"
#include "tests/support/poisoned.h"
#include "tests/support/process.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::train {
namespace {

using ResultJson = nlohmann::ordered_json;

ResultJson result_in(const std::filesystem::path& folder) {
  std::ifstream file(RunFolder{folder}.result());
  return ResultJson::parse(file, nullptr, false);
}

TEST_CASE("run result: what a finished run came to") {
  const test::TempDir temp;
  const Summary summary = test::train_in(temp.path(), test::small_job({"train.epochs=2"}));
  const ResultJson json = result_in(temp.path());
  CHECK(json.at("outcome") == "finished");
  CHECK(json.at("steps") == 16);
  CHECK(json.at("test").at("error") == summary.test.at("error"));
  CHECK(json.at("best_test").at("loss") == summary.best_test->loss);
  CHECK(json.at("test").at("counted").at("error") == summary.test.rows);
  CHECK(json.at("total_seconds") == summary.total_seconds);
  CHECK(summary.total_seconds >= summary.seconds);
}

std::vector<std::string> keys_of(const ResultJson& json) {
  std::vector<std::string> keys;
  for (const auto& [key, unused] : json.items()) keys.push_back(key);
  return keys;
}

// Every field is that of the evaluation, and there is no other.
void check_evaluation(const ResultJson& json, const Evaluation& e) {
  std::vector<std::string> keys{"loss"};
  CHECK(json.at("loss") == e.loss);
  for (const Measured& m : e.metrics) {
    keys.push_back(m.info.name);
    CHECK(json.at(m.info.name) == m.value);
  }
  keys.emplace_back("rows");
  CHECK(json.at("rows") == e.rows);
  if (e.items > double(e.rows)) {
    keys.emplace_back("items");
    CHECK(json.at("items") == e.items);
  }
  std::vector<std::string> shares;
  for (const Measured& m : e.metrics) {
    if (m.info.unit != "%" || m.count == 0) continue;
    shares.push_back(m.info.name);
    CHECK(json.at("counted").at(m.info.name) == m.count);
  }
  if (!shares.empty()) {
    keys.emplace_back("counted");
    CHECK(keys_of(json.at("counted")) == shares);
  }
  CHECK(keys_of(json) == keys);
}

using Keys = std::vector<std::string>;

TEST_CASE("run result: every field, for rows and for tokens") {
  for (const char* model : {"mnist_mlp", "word_lm"}) {
    CAPTURE(std::string(model));
    const test::TempDir temp;
    const Summary s = test::train_in(
        temp.path(), test::small_job({"train.epochs=2", "train.average_last=2"}, model));
    CHECK((s.test.items > double(s.test.rows)) == (std::string(model) == "word_lm"));
    const ResultJson json = result_in(temp.path());
    CHECK(keys_of(json) == Keys{"outcome", "data", "steps", "epochs", "stopped_early", "train_loss",
                                "best_valid", "best_step", "skipped", "valid", "test", "best_test",
                                "average_test", "seconds", "total_seconds", "items_per_second"});
    CHECK(json.at("data") == s.data);
    CHECK_FALSE(s.data.empty());
    CHECK(json.at("steps") == s.state.step);
    CHECK(json.at("epochs") == 2);
    CHECK(json.at("stopped_early") == false);
    CHECK(json.at("train_loss") == s.train_loss);
    CHECK(json.at("best_valid") == s.state.best);
    CHECK(json.at("best_step") == s.state.best_step);
    CHECK(json.at("skipped") == 0);
    check_evaluation(json.at("valid"), s.valid);
    check_evaluation(json.at("test"), s.test);
    check_evaluation(json.at("best_test"), *s.best_test);
    check_evaluation(json.at("average_test"), *s.average_test);
    CHECK(json.at("seconds") == s.seconds);
    CHECK(json.at("items_per_second") == s.items_per_second);
    CHECK(s.items_per_second > 0);
  }
}

TEST_CASE("run result: why a run stopped early, and what it left out") {
  const test::TempDir temp;
  const Summary s = test::train_in(
      temp / "early", test::small_job({"train.epochs=50", "train.lr=1e-20", "train.patience=1"}));
  const ResultJson json = result_in(temp / "early");
  CHECK(json.at("stopped_early") == true);
  CHECK(json.at("stopped_because") == s.stopped_because);
  test::train_in(temp / "skipped",
                 test::poisoned({{3, 9}}, {"train.on_nonfinite=skip", "train.max_steps=10"}));
  CHECK(result_in(temp / "skipped").at("skipped") == 2);
}

TEST_CASE("run result: every field of every line of metrics.jsonl") {
  const test::TempDir temp;
  const Summary s = test::train_in(
      temp.path(), test::small_job({"train.epochs=2", "train.log_every=3", "train.test_every=2e",
                                    "train.lr=0.25", "train.optimizer=sgd"}));
  double seconds = 0;
  std::vector<std::int64_t> logged;
  std::vector<std::string> splits;
  for (const ResultJson& line : io::read_metrics(RunFolder{temp.path()}.metrics())) {
    CHECK(line.at("seconds") >= seconds);
    seconds = line.at("seconds");
    const std::int64_t step = line.at("step");
    if (!line.contains("split")) {
      CHECK(keys_of(line) ==
            Keys{"step", "epoch", "loss", "lr", "grad_norm", "items_per_second", "seconds"});
      logged.push_back(step);
      CHECK(line.at("epoch") == (step - 1) / 8);
      CHECK(line.at("lr") == 0.25);
      for (const char* key : {"loss", "grad_norm", "items_per_second"}) CHECK(line.at(key) > 0);
      continue;
    }
    splits.push_back(line.at("split"));
    CHECK(line.at("epoch") == step / 8);
    Keys keys{"step", "epoch", "split", "loss", "error", "seconds"};
    if (splits.back() == "train") std::erase(keys, "error");
    CHECK(keys_of(line) == keys);
    if (step < 16) continue;
    const Evaluation* e = splits.back() == "valid"  ? &s.valid
                          : splits.back() == "test" ? &s.test
                                                    : nullptr;
    CHECK(line.at("loss") == (e ? e->loss : s.train_loss));
    if (e) CHECK(line.at("error") == e->at("error"));
  }
  CHECK(logged == std::vector<std::int64_t>{3, 6, 9, 12, 15});
  CHECK(splits == std::vector<std::string>{"train", "valid", "train", "valid", "test"});
}

TEST_CASE("run result: a finished run is resumed to nothing, unless its recipe changes") {
  const test::TempDir temp;
  const Job job = test::small_job({"train.epochs=1", "train.lr=1e-2"});
  test::train_in(temp.path(), job);
  const auto files = [&] {
    std::map<std::string, std::string> contents;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(temp.path())) {
      const bool counts = entry.is_regular_file() && entry.path().filename() != "lock";
      if (counts) contents[entry.path()] = test::read_bytes(entry.path());
    }
    return contents;
  };
  const auto before = files();
  const auto backend = make_backend(default_backend());
  const RunOptions options{.folder = temp.path(), .resume = true, .quiet = true, .facts = {}};
  CHECK(Trainer(*backend, job, options).has_finished());
  CHECK((files() == before));
  test::train_in(temp.path(), job, true);  // it measures, and writes nothing
  CHECK((files() == before));
  const auto said = test::run_keel({"train", "--quiet", "--resume", temp.path().string()});
  CHECK(said.code == 0);
  CHECK(said.out.empty());
  CHECK(said.err == temp.path().string() + ": finished already; nothing to do\n");
  const auto json = test::run_keel({"train", "--resume", temp.path().string(), "--json"});
  ResultJson expected{{"folder", temp.path().string()}};
  expected.update(result_in(temp.path()));
  CHECK(ResultJson::parse(json.out, nullptr, false) == expected);
  CHECK((files() == before));
  // There is more to do with another recipe, or if the result is not there.
  test::train_in(temp.path(),
                 test::small_job({"train.epochs=1", "train.lr=1e-2", "train.average_last=2"}),
                 true);
  CHECK(result_in(temp.path()).contains("average_test"));
  std::filesystem::remove(RunFolder{temp.path()}.result());
  test::train_in(temp.path(), job, true);
  CHECK(result_in(temp.path()).at("outcome") == "finished");
}

TEST_CASE("run result: a run that goes on has none until it ends again") {
  const test::TempDir temp;
  test::train_in(temp.path(), test::small_job({"train.max_steps=2"}));
  const double before = result_in(temp.path()).at("total_seconds");
  const Job longer = test::small_job({"train.max_steps=4"});
  {
    const auto backend = make_backend(default_backend());
    const Trainer trainer(*backend, longer,
                          {.folder = temp.path(), .resume = true, .quiet = true, .facts = {}});
    CHECK_FALSE(std::filesystem::exists(RunFolder{temp.path()}.result()));
  }
  test::train_in(temp.path(), longer, true);
  CHECK(result_in(temp.path()).at("steps") == 4);
  CHECK(result_in(temp.path()).at("total_seconds") > 0);
  CHECK(before > 0);
}

TEST_CASE("run result: a resumed run's config.toml is that of the resumed run") {
  const test::TempDir temp;
  test::train_in(temp.path(), test::small_job({"train.max_steps=2"}));
  test::train_in(temp.path(), test::small_job({"train.max_steps=4"}), true);
  const std::string config = test::read_bytes(RunFolder{temp.path()}.config());
  CHECK(config.find("max_steps = 4\n") != std::string::npos);
}

TEST_CASE("run result: a run that diverged says where") {
  const test::TempDir temp;
  std::string message;
  try {
    test::train_in(temp.path(), test::small_job({"train.optimizer=sgd", "train.lr=9e5",
                                                 "train.weight_decay=1e37"}));
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK(message.find("first not finite: ") != std::string::npos);
  CHECK(result_in(temp.path()) == ResultJson{{"outcome", "diverged"}, {"message", message}});
}

}  // namespace
}  // namespace keel::train
