// What result.json says of a run that ended, and that there is none of one that has not.
#include "frontend/train/run_result.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/backends.h"
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
