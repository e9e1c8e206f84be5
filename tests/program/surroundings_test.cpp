// Failures of the program's surroundings: streams that take nothing, limits on threads, memory and
// files, a terminal that is closed. The program ends with its exit code and a message, and no work
// is lost.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::Process;
using test::ProcessOptions;
using test::small_train;
using test::step_file;

// A training that has something to tell.
std::vector<std::string> talking_train(const fs::path& folder) {
  auto arguments = small_train(folder, {"train.epochs=2"});
  std::erase(arguments, "--quiet");
  return arguments;
}

TEST_CASE("surroundings: a training outlives a standard error that takes nothing" *
          doctest::test_suite("slow")) {
  const struct {
    const char* what;
    ProcessOptions options;
  } rows[] = {{"closed", {.close_err = true}},
              {"read no more", {.unread_err = true}},
              {"on a full disk", {.err = "/dev/full"}}};
  for (const auto& row : rows) {
    CAPTURE(row.what);
    const test::TempDir temp;
    const ProcessResult result = run_keel(talking_train(temp / "run"), row.options);
    CHECK(result.code == 0);
    CHECK(holds(result.out, "steps: 16 in "));
    CHECK(fs::exists(step_file(temp / "run", 16)));
    CHECK(fs::exists(temp / "run/result.json"));
  }
}

TEST_CASE("surroundings: an error keeps its exit code though nobody can be told of it") {
  for (const ProcessOptions& options :
       {ProcessOptions{.close_err = true}, {.unread_err = true}, {.err = "/dev/full"}}) {
    CHECK(run_keel({"train", "mnist_mpl"}, options).code == 2);
    CHECK(run_keel({"eval", "nowhere.safetensors"}, options).code == 4);
  }
}

TEST_CASE("surroundings: a stack that is too small is refused") {
  for (const std::int64_t kib : {64, 128, 512}) {
    check_refusal(run_keel({"list", "norms"}, {.max_stack_bytes = kib << 10}), 5,
                  fmt::format("expected a stack of 1024 KiB or more, got {} KiB", kib));
  }
  const test::TempDir temp;
  CHECK(run_keel(small_train(temp / "run", {"train.max_steps=2"}), {.max_stack_bytes = 1 << 20})
            .code == 0);
}

TEST_CASE("surroundings: a reader that goes away ends the program without a word") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"list", "norms"}, {"list", "models", "--json"}, {"--help"}}) {
    CAPTURE(command.front());
    const ProcessResult result = run_keel(command, {.unread_out = true});
    CHECK(result.code == 141);
    CHECK(result.err == "");
  }
  const test::TempDir temp;
  CHECK(run_keel(small_train(temp / "run", {"train.epochs=1"}), {.unread_out = true}).code == 141);
  CHECK(fs::exists(temp / "run/result.json"));
}

TEST_CASE("surroundings: a limit on the size of files is an error, and leaves no half of one") {
  const test::TempDir temp;
  const ProcessResult result =
      run_keel(small_train(temp / "run", {"train.epochs=1"}), {.max_file_bytes = 2000});
  check_refusal(result, 4, "write: ");
  for (const auto& entry : fs::recursive_directory_iterator(temp / "run")) {
    CHECK_FALSE(entry.is_regular_file());
  }
}

// Whether a thread more than this process has would be one too many, which root is not told.
bool threads_are_counted() {
  const ProcessResult result = run_keel({"list", "norms"}, {.max_threads = 1, .as_nobody = true});
  if (result.code == 127) MESSAGE("skipped: the program lies where other users cannot reach it");
  return result.code != 127;
}

TEST_CASE("surroundings: a thread that cannot be started is a lack of memory") {
  if (!threads_are_counted()) return;
  const test::TempDir temp;
  fs::permissions(temp.path(), fs::perms::all);
  const ProcessOptions one{.max_threads = 1, .as_nobody = true};
  // Threads of a backend, and one that reads the rows of the next step.
  auto several = small_train(temp / "a", {"train.epochs=1", "data.source=builtin"});
  several.insert(several.end(), {"--threads", "3"});
  check_refusal(run_keel(several, one), 5, "thread");
  auto reading =
      small_train(temp / "b", {"train.max_steps=1", "data.source=builtin", "data.train_rows=40"},
                  "skip_thoughts");
  reading.insert(reading.end(), {"--backend", "reference"});
  check_refusal(run_keel(reading, one), 5, "cannot start a thread that reads ahead");
}

TEST_CASE("surroundings: a terminal that is closed ends a training as SIGTERM does") {
  const test::TempDir temp;
  Process process(small_train(temp / "run", {"train.epochs=100000", "train.checkpoint_every=1"}));
  REQUIRE(wait_for_file(step_file(temp / "run", 3), process));
  process.signal(SIGHUP);
  const ProcessResult result = process.wait();
  CHECK(result.code == 129);
  CHECK(holds(result.err, "keel train --resume "));
}

TEST_CASE("surroundings: under nohup a training goes on when the terminal is closed" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  Process process(small_train(temp / "run", {"train.epochs=100000", "train.checkpoint_every=1"}),
                  {.ignore_hangup = true});
  REQUIRE(wait_for_file(step_file(temp / "run", 3), process));
  process.signal(SIGHUP);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK_FALSE(process.has_ended());
  process.signal(SIGTERM);
  CHECK(process.wait().code == 143);
}

}  // namespace
}  // namespace keel::cli
