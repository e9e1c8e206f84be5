// A run that is interrupted and resumed gives the same bytes as one that never was.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "backends/backends.h"
#include "frontend/io/safetensors.h"
#include "src/core/rng.h"
#include "tests/support/checks.h"
#include "tests/support/process.h"
#include "tests/support/same_run.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::train {
namespace {

namespace fs = std::filesystem;
using test::check_same_end;
using test::Process;
using test::operator+;
using test::read_bytes;
using test::run_keel;
using test::same_bytes;
using test::Settings;
using test::small_job;
using test::small_train;
using test::step_file;
using test::train_in;

TEST_CASE("resume: N steps and N more are 2N steps, byte for byte") {
  const struct {
    Settings settings;
    std::int64_t half;
  } rows[] = {{{}, 8},  // at the end of an epoch
              {{"train.log_every=2"}, 11},
              {{"model.norm=batchnorm", "train.optimizer=sgd", "train.momentum=0.9"}, 5},
              {{"model.norm=weightnorm"}, 7},
              {{"train.accumulate=2", "train.batch=16", "train.clip=global"}, 9},
              {{"train.optimizer=adamw", "train.weight_decay=0.1", "train.patience=9"}, 13}};
  for (const auto& row : rows) {
    const test::TempDir temp;
    const auto until = [&](std::int64_t step) {
      return small_job(row.settings + Settings{fmt::format("train.max_steps={}", step)});
    };
    train_in(temp / "straight", until(2 * row.half));
    train_in(temp / "halves", until(row.half));
    CHECK_FALSE(fs::exists(step_file(temp / "halves", 2 * row.half)));
    train_in(temp / "halves", until(2 * row.half), true);
    check_same_end(temp / "halves", temp / "straight", 2 * row.half);
  }
}

TEST_CASE("resume: every checkpoint leads to the same end, schedule and all") {
  const test::TempDir temp;
  const Job job = small_job({"model.norm=batchnorm", "train.schedule=cosine", "train.warmup=3",
                             "train.epochs=2", "train.checkpoint_every=3",
                             "train.keep_checkpoints=99", "train.log_every=1"});
  train_in(temp / "straight", job);
  for (std::int64_t kept : {3, 8, 9, 15}) {
    CAPTURE(kept);
    const fs::path folder = temp / fmt::format("from{}", kept);
    fs::copy(temp / "straight", folder, fs::copy_options::recursive);
    for (std::int64_t step = kept + 1; step <= 16; ++step) fs::remove(step_file(folder, step));
    train_in(folder, job, true);
    check_same_end(folder, temp / "straight", 16);
  }
}

TEST_CASE("resume: a finished run has nothing to do") {
  const test::TempDir temp;
  const Job job = small_job({"train.epochs=1"});
  const Summary first = train_in(temp.path(), job);
  const std::string before = read_bytes(step_file(temp.path(), 8));
  const Summary again = train_in(temp.path(), job, true);
  CHECK(again.state.step == 8);
  CHECK(again.test.loss == first.test.loss);
  CHECK((read_bytes(step_file(temp.path(), 8)) == before));
}

void flip_byte(const fs::path& path) {
  std::string bytes = read_bytes(path);
  bytes[bytes.size() / 2] ^= 0x10;
  test::write_bytes(path, bytes);
}

TEST_CASE("resume: a damaged newest checkpoint is reported and the one before it used") {
  const test::TempDir temp;
  const Settings settings{"train.epochs=3"};
  REQUIRE(run_keel(small_train(temp / "straight", settings)).code == 0);
  fs::copy(temp / "straight", temp / "damaged", fs::copy_options::recursive);
  flip_byte(step_file(temp / "damaged", 24));
  const auto result = run_keel({"train", "--quiet", "--resume", (temp / "damaged").string()});
  CHECK(result.code == 0);
  CHECK(result.err.starts_with("warning: [checkpoint] passed over: "));
  CHECK(result.err.find("step-00000024.safetensors") != std::string::npos);
  CHECK(std::ranges::count(result.err, '\n') == 1);
  check_same_end(temp / "damaged", temp / "straight", 24);
}

TEST_CASE("resume: without an intact checkpoint it is refused and nothing is touched") {
  const test::TempDir temp;
  const auto resume = [&](const std::string& name) {
    return run_keel({"train", "--quiet", "--resume", (temp / name).string()});
  };
  CHECK(resume("nowhere").code == 4);
  CHECK_FALSE(fs::exists(temp / "nowhere"));
  REQUIRE(run_keel(small_train(temp / "run", {"train.epochs=1"})).code == 0);
  flip_byte(step_file(temp / "run", 8));
  const std::string metrics = read_bytes(temp / "run/metrics.jsonl");
  const auto result = resume("run");
  CHECK(result.code == 3);
  CHECK(result.err.find("no intact checkpoint to resume from") != std::string::npos);
  CHECK(read_bytes(temp / "run/metrics.jsonl") == metrics);
}

// Trains on a copy of `data`, changes a file of it, and resumes; then again as it was.
void check_other_data(const char* model, const fs::path& data, const char* name,
                      const std::function<void(std::string&)>& change) {
  CAPTURE(std::string(model));
  const test::TempDir temp;
  fs::copy(data, temp / "data");
  const Settings settings{"data.source=" + (temp / "data").string(), "train.max_steps=2"};
  REQUIRE(run_keel(small_train(temp / "run", settings, model)).code == 0);
  const std::string metrics = read_bytes(temp / "run/metrics.jsonl");
  const std::string before = read_bytes(temp / "data" / name);
  std::string after = before;
  change(after);
  REQUIRE(after != before);
  test::write_bytes(temp / "data" / name, after);
  const std::vector<std::string> resume{
      "train", "--quiet", "--resume", (temp / "run").string(), "--set", "train.max_steps=3"};
  const auto refused = run_keel(resume);
  CHECK(refused.code == 3);
  CHECK(refused.err.find("the data are not those that it was trained on") != std::string::npos);
  CHECK(read_bytes(temp / "run/metrics.jsonl") == metrics);
  test::write_bytes(temp / "data" / name, before);
  CHECK(run_keel(resume).code == 0);
}

TEST_CASE("resume: on other data it is refused and nothing is touched" *
          doctest::test_suite("slow")) {
  // Another last sentence: one more or less on only one side would be refused as that.
  check_other_data("translation", test::small_pairs(), "train.de", [](std::string& text) {
    text.erase(text.rfind('\n', text.size() - 2) + 1);
    text += text.substr(0, text.find('\n') + 1);
  });
  check_other_data("dependency_parser", test::small_treebank(), "dev.conllu",
                   [](std::string& text) { text += std::string(text); });
  check_other_data("mnist_mlp", test::small_digits(), "train-labels-idx1-ubyte",
                   [](std::string& bytes) {
                     constexpr std::ptrdiff_t kHeader = 8;
                     std::replace(bytes.begin() + kHeader, bytes.end(), '\3', '\4');
                   });
}

TEST_CASE("resume: a config.toml that was edited to another network is refused") {
  const test::TempDir temp;
  train_in(temp.path(), small_job({"train.epochs=1"}));
  const std::string before = read_bytes(temp / "config.toml");
  std::string edited = before;
  const std::string line = "norm = 'layernorm'";
  REQUIRE(edited.find(line) != edited.npos);
  edited.replace(edited.find(line), line.size(), "norm = 'rmsnorm'");
  test::write_bytes(temp / "config.toml", edited);
  test::check_refused([&] { train_in(temp.path(), small_job({"train.epochs=2"}), true); },
                      fmt::format("{}: ", fs::path(temp / "config.toml").string()),
                      "model.norm: expected 'layernorm', with which ", ErrorKind::kBadInput);
  CHECK(read_bytes(temp / "config.toml") == edited);
  test::write_bytes(temp / "config.toml", before);
  train_in(temp.path(), small_job({"train.epochs=2"}), true);
}

TEST_CASE("resume: a checkpoint that does not know its data goes on with any") {
  const test::TempDir temp;
  train_in(temp.path(), small_job({"train.epochs=1"}));
  const fs::path last = step_file(temp.path(), 8);
  io::TensorFile file = io::read_safetensors(last, {.require_checksums = true});
  CHECK(file.metadata.at("data").starts_with("train 275 rows, "));
  file.metadata.erase("data");
  io::write_safetensors(last, file);
  train_in(temp.path(), small_job({"train.epochs=2"}), true);
  file = io::read_safetensors(step_file(temp.path(), 16), {.require_checksums = true});
  CHECK(file.metadata.at("data").starts_with("train 275 rows, "));
}

TEST_CASE("resume: a checkpoint says what computed it, and another backend is warned of") {
  const test::TempDir temp;
  REQUIRE(run_keel(small_train(temp.path(), {"train.epochs=1"})).code == 0);
  const fs::path last = step_file(temp.path(), 8);
  io::TensorFile file = io::read_safetensors(last, {.require_checksums = true});
  const std::string own = file.metadata.at("backend");
  CHECK(own.starts_with(default_backend()));
  const auto resumed = [&](const char* epochs) {
    const auto result =
        run_keel({"train", "--quiet", "--resume", temp.path().string(), "--set", epochs});
    REQUIRE(result.code == 0);
    return result.err;
  };
  CHECK(resumed("train.epochs=2") == "");
  const fs::path next = step_file(temp.path(), 16);
  file = io::read_safetensors(next, {.require_checksums = true});
  CHECK(file.metadata.at("backend") == own);
  file.metadata["backend"] = "cuda: device of another kind";
  io::write_safetensors(next, file);
  const std::string warned = resumed("train.epochs=3");
  CHECK(warned.starts_with("warning: the run was computed by cuda: device of another kind, and "));
  CHECK(warned.find(own) != std::string::npos);
  file = io::read_safetensors(step_file(temp.path(), 24), {.require_checksums = true});
  CHECK(file.metadata.at("backend") == own);
}

bool wait_for(const fs::path& path, Process& process) {
  while (!fs::exists(path)) {
    if (process.has_ended()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST_CASE("resume: SIGTERM and SIGINT save, say how to go on, and exit 128 and the signal") {
  for (int signal : {SIGTERM, SIGINT}) {
    CAPTURE(signal);
    const test::TempDir temp;
    const std::string folder = (temp / "run").string();
    // Far more epochs than it will have time for; the resumed run ends soon.
    Process process(small_train(folder, {"train.epochs=100000", "train.checkpoint_every=1"}));
    REQUIRE(wait_for(step_file(folder, 3), process));
    process.signal(signal);
    const auto result = process.wait();
    CHECK(result.code == 128 + signal);
    CHECK(result.out.empty());
    CHECK(result.err.find("keel train --resume " + folder + "\n") != std::string::npos);
    const CheckpointStore store(temp / "run/checkpoints", [](const std::string&) {});
    const auto last = store.latest();
    REQUIRE(last.has_value());
    CHECK(last->path == store.paths().front());
    const std::string end = fmt::format("train.max_steps={}", last->step + 5);
    CHECK(run_keel({"train", "--quiet", "--resume", folder, "--set", end}).code == 0);
    const fs::path straight = temp / "straight";
    REQUIRE(
        run_keel(small_train(straight, {"train.epochs=100000", "train.checkpoint_every=1", end}))
            .code == 0);
    CHECK(same_bytes(step_file(folder, last->step + 5), step_file(straight, last->step + 5)));
  }
}

// Starts it from the beginning or goes on, and kills it, again and again, until it has been left to
// its end.
void check_kills(const char* model, const Settings& settings, std::int64_t last_step) {
  CAPTURE(std::string(model));
  const test::TempDir temp;
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(run_keel(small_train(temp / "straight", settings, model)).code == 0);
  const auto length = std::chrono::steady_clock::now() - start;
  const std::string folder = (temp / "killed").string();
  const auto command = [&] {
    const bool begun = fs::exists(temp / "killed/checkpoints") &&
                       !CheckpointStore(temp / "killed/checkpoints", {}).paths().empty();
    return begun ? std::vector<std::string>{"train", "--quiet", "--resume", folder}
                 : small_train(folder, settings, model);
  };
  const Philox random(1, stream_of("kill"));
  int kills = 0;
  for (std::uint64_t round = 0; round < 12; ++round) {
    Process process(command());
    // Delays of all sizes up to a whole run: some kills come before the first checkpoint.
    std::this_thread::sleep_for(length * random.uniform(round));
    process.signal(SIGKILL);
    const auto result = process.wait();
    CHECK((result.code == -SIGKILL || result.code == 0));
    kills += result.code == -SIGKILL;
  }
  CHECK(kills > 0);
  REQUIRE(run_keel(command()).code == 0);
  check_same_end(folder, temp / "straight", last_step);
}

TEST_CASE("resume: kill -9 at random moments loses nothing" * doctest::test_suite("slow")) {
  const Settings often{"train.checkpoint_every=1", "train.log_every=1"};
  check_kills("mnist_mlp", often + Settings{"train.epochs=4", "model.norm=batchnorm"}, 32);
  check_kills("text_classifier", often + Settings{"train.max_steps=24"}, 24);
}

TEST_CASE("resume: any number of threads gives the same bytes" * doctest::test_suite("slow")) {
  if (default_backend() != "onednn") {
    MESSAGE("skipped: the onednn backend is not built in");
    return;
  }
  const test::TempDir temp;
  for (const char* norm : {"layernorm", "batchnorm"}) {
    std::vector<std::string> files;
    for (const char* threads : {"1", "2", "3"}) {
      const fs::path folder = temp / (std::string(norm) + threads);
      auto arguments = small_train(
          folder, {"train.max_steps=200", "train.epochs=100", std::string("model.norm=") + norm});
      arguments.insert(arguments.end(), {"--threads", threads});
      REQUIRE(run_keel(arguments).code == 0);
      files.push_back(read_bytes(step_file(folder, 200)));
    }
    CHECK((files[0] == files[1]));
    CHECK((files[0] == files[2]));
  }
}

}  // namespace
}  // namespace keel::train
