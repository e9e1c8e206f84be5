// A run's folder, whole, torn, still growing or broken.
#include "frontend/report/run.h"

#include <cmath>

#include "tests/frontend/report/helpers.h"
#include "tests/support/checks.h"

namespace keel::report {
namespace {

const std::string kFinished =
    R"({"outcome": "finished", "data": "RT train, a\u0007", "steps": 20,
"test": {"loss": 1, "error": 9, "rows": 60, "items": 70, "counted": {"error": 65}},
"best_test": {"loss": null, "error": 8, "rows": 60},
"total_seconds": 7.5, "items_per_second": 100})";

Run read(const RunFiles& files) {
  const test::TempDir temp;
  files.write(temp / "run");
  return read_run(temp / "run");
}

TEST_CASE("report run: settings, facts, curves and result") {
  RunFiles files;
  files.result = kFinished;
  const Run run = read(files);
  CHECK(run.model == "mlp");
  CHECK(run.settings == Settings{{"model.norm", "layernorm"},
                                 {"train.lr", "0.001"},
                                 {"train.seed", "1"},
                                 {"run.backend", "onednn"}});
  CHECK(run.facts == Settings{{"run.model", "mlp"}, {"run.processor", "a cpu"}});
  CHECK(run.outcome == Outcome::kFinished);
  CHECK(run.step == 20);
  CHECK(run.data == "RT train, a\uFFFD");
  CHECK(run.seconds == 7.5);
  CHECK(run.items_per_second == 100);
  CHECK(run.test.at("last") == Values{{"loss", 1}, {"error", 9}});
  CHECK(run.counted.at("last") == Values{{"error", 65}});
  CHECK_FALSE(run.counted.contains("best"));
  CHECK(run.test.at("best") == Values{{"error", 8}});  // JSON has null for what is not finite
  const Curve* error = find_curve(run, "valid", "error");
  REQUIRE(error != nullptr);
  CHECK(error->step == std::vector<double>{10});
  CHECK(error->value == std::vector<double>{12.5});
  CHECK(find_curve(run, "step", "lr")->value == std::vector<double>{0.001});
  CHECK(find_curve(run, "step", "seconds") == nullptr);
  CHECK(find_curve(run, "test", "error") == nullptr);
}

TEST_CASE("report run: data have a short name") {
  RunFiles files;
  CHECK(data_name(read(files)) == "built-in data");
  files.result = kFinished;
  CHECK(data_name(read(files)) == "RT");
  Run run = read(files);
  for (const char* folder : {"/data/mnist", "/data/mnist/", "mnist"}) {
    run.settings["data.source"] = folder;
    CHECK(data_name(run) == "mnist");
  }
  run.settings["data.source"] = "builtin";
  run.data = "built-in digits, train, seed 1";
  CHECK(data_name(run) == "built-in digits");
}

TEST_CASE("report run: one that goes on tells how far it got; a torn line is passed over") {
  RunFiles files;
  files.metrics += R"({"step":15,"epoch":1,"loss":null,"seconds":3,"rows_per_second":80}
{"step":20,"epoch":2,"split":"valid","los)";
  const Run run = read(files);
  CHECK(run.outcome == Outcome::kUnfinished);
  CHECK(run.step == 15);
  CHECK(run.seconds == 3);
  CHECK(run.items_per_second == 80);
  CHECK(run.test.empty());
  CHECK(find_curve(run, "valid", "loss")->value == std::vector<double>{1.25});
  const Curve* loss = find_curve(run, "step", "loss");
  REQUIRE(loss->value.size() == 2);
  CHECK(std::isnan(loss->value[1]));
}

TEST_CASE("report run: one that diverged says why") {
  RunFiles files;
  files.result = R"({"outcome": "diverged", "message": "step 3: loss is nan"})";
  const Run run = read(files);
  CHECK(run.outcome == Outcome::kDiverged);
  CHECK(name_of(run.outcome) == "diverged");
  CHECK(run.message == "step 3: loss is nan");
}

TEST_CASE("report run: epochs in parts, between their ends and after the last") {
  Run run = made_run("a", {}, {});
  CHECK_FALSE(epoch_at(run, 5).has_value());
  run.epochs = {{10, 1}, {30, 2}};
  CHECK(epoch_at(run, 0) == 0);
  CHECK(epoch_at(run, 5) == 0.5);
  CHECK(epoch_at(run, 10) == 1);
  CHECK(epoch_at(run, 20) == 1.5);
  CHECK(epoch_at(run, 30) == 2);
  CHECK(epoch_at(run, 40) == 2.5);
}

TEST_CASE("report run: texts are fit to be shown") {
  RunFiles files;
  files.config = "[model]\nnorm = \"a\\u001B[31m\"\n[run]\nmodel = \"m<b>\"\n";
  files.metrics = "{\"step\":1,\"x\\u0007\":1}\n";
  const Run run = read(files);
  CHECK(run.settings.at("model.norm") == "a\uFFFD[31m");
  CHECK(run.model == "m<b>");
  CHECK(find_curve(run, "step", "x\uFFFD") != nullptr);
}

TEST_CASE("report run: what is missing or broken is named") {
  const test::TempDir temp;
  const std::string folder = temp / "run";
  const auto refused = [&](const std::string& file, ErrorKind kind, const std::string& part = "") {
    std::string what;
    try {
      read_run(folder);
    } catch (const Error& error) {
      what = error.what();
      CHECK(error.kind() == kind);
    }
    CAPTURE(what);
    CHECK(what.find(folder + "/" + file) != std::string::npos);
    CHECK(what.find(part) != std::string::npos);
  };
  refused("config.toml", ErrorKind::kIo);
  RunFiles files;
  files.write(folder);
  std::filesystem::remove(folder + "/metrics.jsonl");
  refused("metrics.jsonl", ErrorKind::kIo);
  for (const char* config :
       {"[model\n", "x = 1\n", "[model]\nnorm = [1]\n", "[model]\nnorm = \"a\"\n"}) {
    CAPTURE(std::string(config));
    files.config = config;
    files.write(folder);
    refused("config.toml", ErrorKind::kBadInput);
  }
  files = {};
  files.metrics = "{\"step\":1}\nnothing\n{\"step\":2}\n";
  files.write(folder);
  refused("metrics.jsonl:2", ErrorKind::kBadInput);
  files = {};
  for (const char* result :
       {"{", "[]", "{}", R"({"outcome": "finished"})", R"({"outcome": "diverged"})",
        R"({"outcome": "finished", "steps": "x"})",
        R"({"outcome": "finished", "data": 1, "steps": 1, "test": {}})"}) {
    CAPTURE(std::string(result));
    files.result = result;
    files.write(folder);
    refused("result.json", ErrorKind::kBadInput, "expected the result of a run");
  }
}

}  // namespace
}  // namespace keel::report
