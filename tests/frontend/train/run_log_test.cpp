// The records that a run writes: metrics, events and plots, and how a resumed run goes on.
#include "frontend/train/run_log.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "frontend/task/classification.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

std::vector<fs::path> event_files(const RunFolder& folder) {
  std::vector<fs::path> paths = files_in(folder.events_folder());
  std::erase_if(paths, [](const fs::path& path) {
    return path.filename().string().find("tfevents") == std::string::npos;
  });
  return paths;
}

const std::vector<task::MetricInfo> kMetrics = task::error_metric();
const Evaluation kEvaluation{
    .loss = 0.5, .metrics = {{.info = kMetrics[0], .value = 0.25}}, .rows = 8};

void write_two_epochs(RunLog& log) {
  for (std::int64_t epoch = 1; epoch <= 2; ++epoch) {
    log.step({.step = 10 * epoch - 5,
              .epoch = epoch - 1,
              .loss = 1.5,
              .lr = 0.1,
              .grad_norm = 2,
              .items_per_second = 100});
    log.epoch(10 * epoch, epoch, 1.25);
    log.evaluation(10 * epoch, epoch, "valid", kEvaluation);
  }
}

TEST_CASE("run log: a line for a step, an epoch and an evaluation") {
  const test::TempDir temp;
  const RunFolder folder{temp / "deep/run"};
  RunLog log(folder, std::nullopt);
  write_two_epochs(log);
  log.sync();
  auto lines = io::read_metrics(folder.metrics());
  for (auto& line : lines) CHECK(line.erase("seconds") == 1);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0] == Json{{"step", 5},
                         {"epoch", 0},
                         {"loss", 1.5},
                         {"lr", 0.1},
                         {"grad_norm", 2.0},
                         {"items_per_second", 100.0}});
  CHECK(lines[1] == Json{{"step", 10}, {"epoch", 1}, {"split", "train"}, {"loss", 1.25}});
  CHECK(lines[5] ==
        Json{{"step", 20}, {"epoch", 2}, {"split", "valid"}, {"loss", 0.5}, {"error", 0.25}});
}

TEST_CASE("run log: every line says the time so far, over the processes of a run") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  const auto seconds_of = [&](std::size_t line) {
    return io::read_metrics(folder.metrics())[line].at("seconds").get<double>();
  };
  {
    RunLog log(folder, std::nullopt);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    write_two_epochs(log);
    CHECK(log.seconds() >= 0.03);
  }
  CHECK(seconds_of(0) >= 0.03);
  CHECK(seconds_of(0) < 30);
  for (std::size_t i = 1; i < 6; ++i) CHECK(seconds_of(i) >= seconds_of(i - 1));
  const double before = seconds_of(2);
  RunLog log(folder, 10);  // what came after step 10 does not count
  log.epoch(20, 2, 1);
  CHECK(seconds_of(3) >= before);
  CHECK(seconds_of(3) < before + 30);
  RunLog anew({temp / "other"}, std::nullopt);
  CHECK(anew.seconds() < before);
  // The last line that says a time counts, whatever stands before it and behind.
  fs::create_directory(temp / "third");
  test::write_bytes(temp / "third/metrics.jsonl",
                    "{\"step\": 1, \"seconds\": 50}\n{\"step\": 2, \"seconds\": 300}\n"
                    "{\"step\": 2, \"seconds\": \"?\"}\n");
  for (const auto& [at, least] : {std::pair{2, 300}, {1, 50}}) {
    const RunLog resumed({temp / "third"}, at);
    CHECK(resumed.seconds() >= least);
    CHECK(resumed.seconds() < least + 30);
  }
}

TEST_CASE("run log: events hold a tag for every number") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  RunLog log(folder, std::nullopt);
  write_two_epochs(log);
  const auto files = event_files(folder);
  REQUIRE(files.size() == 1);
  const std::string bytes = test::read_bytes(files[0]);
  for (const char* tag :
       {"step/loss", "step/lr", "step/grad_norm", "train/loss", "valid/loss", "valid/error"}) {
    CAPTURE(std::string(tag));
    CHECK(bytes.find(tag) != std::string::npos);
  }
}

// The step of the first event with a tag. Before the tag stand its length, those of the three
// messages around it, and the step, all of one byte here.
int step_of_event(const std::string& bytes, const std::string& tag) {
  const std::size_t at = bytes.find(tag);
  REQUIRE(at != bytes.npos);
  REQUIRE(at >= 8);
  REQUIRE(bytes[at - 6] == '\x2a');
  REQUIRE(bytes[at - 8] == '\x10');
  return bytes[at - 7];
}

TEST_CASE("run log: every event stands at its step, not at its epoch") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  RunLog log(folder, std::nullopt);
  write_two_epochs(log);
  log.result(20, "test_best", kEvaluation);
  const std::string bytes = test::read_bytes(event_files(folder).at(0));
  for (const char* tag : {"step/loss", "step/lr", "step/grad_norm"}) {
    CAPTURE(std::string(tag));
    CHECK(step_of_event(bytes, tag) == 5);
  }
  for (const char* tag : {"train/loss", "valid/loss", "valid/error"}) {
    CAPTURE(std::string(tag));
    CHECK(step_of_event(bytes, tag) == 10);
    CHECK(step_of_event(bytes.substr(bytes.find(tag) + 1), tag) == 20);
  }
  CHECK(step_of_event(bytes, "test_best/loss") == 20);
}

TEST_CASE("run log: what the best weights came to stands at their step, the rest at the end") {
  const test::TempDir temp;
  const Summary summary = test::train_in(
      temp.path(),
      test::small_job({"train.max_steps=7", "train.eval_every=5u", "train.average_last=2"}));
  REQUIRE(summary.state.best_step == 5);
  REQUIRE(summary.state.step == 7);
  const std::string bytes = test::read_bytes(event_files(RunFolder{temp.path()}).at(0));
  CHECK(step_of_event(bytes, "test_best/loss") == 5);
  CHECK(step_of_event(bytes, "test_averaged/loss") == 7);
  CHECK(step_of_event(bytes, "test/loss") == 7);
}

TEST_CASE("run log: what is monitored stands with its step") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  RunLog log(folder, std::nullopt);
  log.step({.step = 1,
            .epoch = 0,
            .loss = 1.5,
            .lr = 0.1,
            .grad_norm = 2,
            .items_per_second = 100,
            .monitored = {{"powernorm.nu_max", 0.25}}});
  CHECK(io::read_metrics(folder.metrics())[0].at("powernorm.nu_max") == 0.25);
  CHECK(test::read_bytes(event_files(folder)[0]).find("step/powernorm.nu_max") !=
        std::string::npos);
}

TEST_CASE("run log: resuming drops later lines and keeps those of its own step") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  {
    RunLog log(folder, std::nullopt);
    write_two_epochs(log);
  }
  RunLog log(folder, 10);
  const auto lines = io::read_metrics(folder.metrics());
  REQUIRE(lines.size() == 3);
  CHECK(lines.back()["split"] == "valid");
  // TensorBoard forgets what the first file says from the step after the checkpoint on.
  const auto files = event_files(folder);
  REQUIRE(files.size() == 2);
  const std::string start = std::string("\x10\x0b\x3a\x02\x08\x01", 6);  // step 11; START
  CHECK(test::read_bytes(files[1]).find(start) != std::string::npos);
}

TEST_CASE("run log: a new run forgets one that never reached a checkpoint") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  {
    RunLog log(folder, std::nullopt);
    write_two_epochs(log);
  }
  RunLog log(folder, std::nullopt);
  CHECK(io::read_metrics(folder.metrics()).empty());
}

TEST_CASE("run log: TensorBoard calls a run by its folder, which an older one's events stay in") {
  const test::TempDir temp;
  CHECK(RunFolder{temp.path()}.events_folder() == temp.path());
  fs::create_directories(temp / "events");
  test::write_bytes(temp / "events/events.out.tfevents.0000000001.000000.keel", "of before");
  const RunFolder folder{temp.path()};
  RunLog log(folder, 10);
  CHECK(folder.events_folder() == temp / "events");
  CHECK(event_files(folder).size() == 2);
}

TEST_CASE("run log: events hold settings, what the run came to, and its end") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  RunLog log(folder, std::nullopt);
  log.settings({{"train.lr", "0.5"}});
  log.result(20, "test_best", kEvaluation);
  log.end(true);
  const std::string bytes = test::read_bytes(event_files(folder).at(0));
  for (const char* part : {"_hparams_/session_start_info", "train.lr", "test_best/loss",
                           "test_best/error", "_hparams_/session_end_info"}) {
    CAPTURE(std::string(part));
    CHECK(bytes.find(part) != std::string::npos);
  }
  CHECK(io::read_metrics(folder.metrics()).empty());
}

// The places of the dots of a plot along its axis of x, as shares of the axis from its first point
// to its last, in the order in which they are drawn.
std::vector<double> places_of_dots(const std::string& svg) {
  constexpr double kLeft = 76, kRight = 676;
  std::vector<double> places;
  for (std::size_t at = svg.find("<path d=\"M"); at != svg.npos;
       at = svg.find("<path d=\"M", at + 1)) {
    const std::string path = svg.substr(at, svg.find('>', at) - at);
    if (path.find("stroke-linecap") == path.npos) continue;
    places.push_back((std::stod(path.substr(10)) - kLeft) / (kRight - kLeft));
  }
  return places;
}

TEST_CASE("run log: a validation within an epoch is drawn where it was taken") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  RunLog log(folder, std::nullopt);
  log.evaluation(4, 0, "valid", kEvaluation);
  log.epoch(10, 1, 1.25);
  log.evaluation(15, 1, "valid", kEvaluation);
  log.epoch(20, 2, 1.2);
  // A longer epoch, and one that is still going on: the last one's length serves for it.
  log.evaluation(30, 2, "valid", kEvaluation);
  log.epoch(60, 3, 1.1);
  log.evaluation(80, 3, "valid", kEvaluation);
  log.plot({"mlp", ""}, kMetrics);
  const std::string error = test::read_bytes(folder.plot("error"));
  CHECK(error.find(">epoch<") != std::string::npos);
  // After 0.4, 1.5, 2.25 and 3.5 epochs.
  const std::vector<double> expected{0, 1.1 / 3.1, 1.85 / 3.1, 1}, places = places_of_dots(error);
  REQUIRE(places.size() == expected.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    CHECK(places[i] == doctest::Approx(expected[i]).epsilon(1e-3));
  }
}

TEST_CASE("run log: plots are drawn along updates while no epoch has ended") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  RunLog log(folder, std::nullopt);
  for (const std::int64_t step : {2, 3, 6}) log.evaluation(step, 0, "valid", kEvaluation);
  log.plot({"mlp", ""}, kMetrics);
  const std::string error = test::read_bytes(folder.plot("error"));
  CHECK(error.find(">update<") != std::string::npos);
  const std::vector<double> places = places_of_dots(error);
  REQUIRE(places.size() == 3);
  CHECK(places[1] == doctest::Approx(0.25));
}

TEST_CASE("run log: a plot says what is drawn, of which training and data") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  RunLog log(folder, std::nullopt);
  write_two_epochs(log);
  log.plot({"mlp with layernorm on digits", "8 rows, seed 3."}, kMetrics);
  const std::string error = test::read_bytes(folder.plot("error")),
                    loss = test::read_bytes(folder.plot("loss"));
  const std::string about = " of mlp with layernorm on digits. 8 rows, seed 3.<";
  CHECK(error.find("<title>Validation error" + about) != std::string::npos);
  CHECK(error.find("\">Validation error" + about) != std::string::npos);  // below the plot
  CHECK(error.find(">error, %<") != std::string::npos);
  CHECK(error.find(">0<") != std::string::npos);  // an error is drawn from 0 on
  // A line that stands alone is not dashed; its axis tells what two lines share.
  CHECK(error.find("stroke-dasharray=\"none\"") != std::string::npos);
  CHECK(loss.find("\">Loss" + about) != std::string::npos);
}

TEST_CASE("run log: draws a curve for each split") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  RunLog log(folder, std::nullopt);
  log.plot({"mlp", ""}, kMetrics);
  write_two_epochs(log);
  log.evaluation(20, 2, "test", kEvaluation);
  log.plot({"mlp", ""}, kMetrics);
  const std::string loss = test::read_bytes(folder.plot("loss")),
                    error = test::read_bytes(folder.plot("error"));
  CHECK(loss.find(">training<") != std::string::npos);
  CHECK(loss.find(">validation<") != std::string::npos);
  CHECK(error.find(">validation<") != std::string::npos);
  CHECK(error.find(">test<") != std::string::npos);
  CHECK(error.find(">training<") == std::string::npos);
}

TEST_CASE("run log: lines that another program changed are no points of a curve") {
  const test::TempDir temp;
  const RunFolder folder{temp.path()};
  test::write_bytes(folder.metrics(),
                    R"({"step":1,"epoch":1,"split":3,"loss":1}
{"step":1,"split":"spam","loss":1}
{"step":1,"epoch":"one","split":"spam","loss":1}
{"step":1,"epoch":1,"split":"spam","loss":"low"}
)");
  RunLog log(folder, 1);
  write_two_epochs(log);
  log.plot({"mlp", ""}, kMetrics);
  const std::string loss = test::read_bytes(folder.plot("loss"));
  CHECK(loss.find(">validation<") != std::string::npos);
  CHECK(loss.find("spam") == std::string::npos);
}

TEST_CASE("run log: a folder that cannot be made is refused") {
  const test::TempDir temp;
  test::write_bytes(temp / "file", "content");
  test::check_refused([&] { RunLog({temp / "file/run"}, std::nullopt); },
                      (temp / "file/run").string(), "cannot make this folder", ErrorKind::kIo);
}

}  // namespace
}  // namespace keel::train
