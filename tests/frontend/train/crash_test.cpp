// Runs whose system calls fail, which end in the middle of one, and whose checkpoints are damaged:
// nothing that was saved is lost, and nothing damaged is taken for whole. tools/crash runs these
// cases in full.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "backends/backends.h"
#include "frontend/io/atomic_file.h"
#include "src/core/rng.h"
#include "tests/support/checks.h"
#include "tests/support/fault.h"
#include "tests/support/same_run.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thoroughness.h"

namespace keel::train {
namespace {

namespace fs = std::filesystem;
using test::is_thorough;
using test::read_bytes;
using test::step_file;

constexpr std::int64_t kLastStep = 6;

Job crash_job() {
  return test::small_job({"train.batch=64", "train.epochs=2", "train.max_steps=6",
                          "train.log_every=1", "train.checkpoint_every=2",
                          "train.keep_checkpoints=2", "model.norm=batchnorm"});
}

// Starts, or goes on where there is something to go on from. In one thread, so that a process may
// be forked off.
void train_or_go_on(const fs::path& folder, const Job& job) {
  const auto backend = make_backend("reference");
  const bool begun = fs::exists(folder / "checkpoints") &&
                     !CheckpointStore(folder / "checkpoints", {}).paths().empty();
  Trainer(*backend, job, {.folder = folder, .resume = begun, .quiet = true, .facts = {}}).run();
}

// The contents of result.json without the times.
nlohmann::ordered_json timeless_result(const fs::path& folder) {
  auto result = nlohmann::ordered_json::parse(read_bytes(folder / "result.json"));
  for (const char* key : {"seconds", "total_seconds", "items_per_second"}) result.erase(key);
  return result;
}

void check_whole(const fs::path& folder, const fs::path& straight) {
  test::check_same_end(folder, straight, kLastStep);
  CHECK(timeless_result(folder) == timeless_result(straight));
  CHECK(read_bytes(folder / "config.toml") == read_bytes(straight / "config.toml"));
}

// The newest intact checkpoint's step, -1 for none; damaged ones are failures.
std::int64_t newest_step(const fs::path& folder) {
  const CheckpointStore store(folder / "checkpoints",
                              [](const std::string& message) { FAIL_CHECK(message); });
  const auto checkpoint = store.latest();
  return checkpoint ? checkpoint->step : -1;
}

// Trains with a call that fails; whether it did, and whether anything noticed.
bool train_with(const test::Fault& fault, const fs::path& folder, const Job& job) {
  const test::FaultGuard guard(fault);
  try {
    train_or_go_on(folder, job);
    return false;
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kIo);
    return true;
  }
}

int count_calls(const fs::path& folder, const Job& job) {
  const test::FaultGuard counter({});
  train_or_go_on(folder, job);
  return counter.calls();
}

TEST_CASE("crash: whichever system call of a run fails, nothing is lost" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const Job job = crash_job();
  const int calls = count_calls(temp / "straight", job);
  REQUIRE(calls > 100);
  int noticed = 0, tried = 0;
  for (const test::Fault& kind :
       {test::Fault{.error = EIO}, test::Fault{.error = ENOSPC, .lasting = true},
        test::Fault{.error = EINTR}}) {
    for (int at = is_thorough() ? 0 : tried % 7; at < calls; at += is_thorough() ? 1 : 7) {
      CAPTURE(at);
      CAPTURE(kind.error);
      test::Fault fault = kind;
      fault.at = at;
      const fs::path folder = temp / "run";
      const bool failed = train_with(fault, folder, job);
      CHECK_FALSE((failed && kind.error == EINTR));  // interrupted calls are repeated
      noticed += failed;
      ++tried;
      if (failed) train_or_go_on(folder, job);
      check_whole(folder, temp / "straight");
      fs::remove_all(folder);
    }
  }
  CHECK(noticed > tried / 3);
  MESSAGE("system calls of a run: " << calls << "; failures tried: " << tried
                                    << ", reported: " << noticed << ", lost: 0");
}

// Trains in a process of its own that ends in the call `at`; whether it got that far.
bool train_and_die(int at, const fs::path& folder, const Job& job) {
  const pid_t child = fork();
  if (child == 0) {
    const test::FaultGuard guard({.at = at, .crash = true});
    train_or_go_on(folder, job);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status) == 9;
}

TEST_CASE("crash: a process that ends in any system call of a run loses nothing" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const Job job = crash_job();
  const int calls = count_calls(temp / "straight", job);
  int deaths = 0;
  for (int at = 0; at < calls; at += is_thorough() ? 1 : 9) {
    CAPTURE(at);
    const fs::path folder = temp / "run";
    deaths += train_and_die(at, folder, job);
    const std::int64_t before = newest_step(folder);
    // Once more, a little later: what the first death left is in the way of the second.
    deaths += train_and_die(at / 2, folder, job);
    CHECK(newest_step(folder) >= before);
    train_or_go_on(folder, job);
    check_whole(folder, temp / "straight");
    fs::remove_all(folder);
  }
  CHECK(deaths > calls / 20);
  MESSAGE("deaths in a system call: " << deaths << ", lost: 0");
}

// A real checkpoint, small enough to be read a hundred thousand times.
std::string checkpoint_bytes(const fs::path& folder) {
  test::train_in(folder, test::small_job({"train.max_steps=2", "model.hidden=4"}));
  return read_bytes(step_file(folder, 2));
}

bool is_refused(const fs::path& path) {
  try {
    io::read_safetensors(path, {.require_checksums = true});
    return false;
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    return true;
  }
}

TEST_CASE("crash: a checkpoint cut anywhere is refused") {
  const test::TempDir temp;
  const std::string bytes = checkpoint_bytes(temp / "run");
  const fs::path path = temp / "cut.safetensors";
  test::write_bytes(path, bytes);
  REQUIRE_FALSE(is_refused(path));
  const std::size_t stride = is_thorough() ? 1 : 97;
  std::int64_t tried = 0, taken = 0;
  for (std::size_t cut = 1; cut <= bytes.size(); cut += stride, ++tried) {
    fs::resize_file(path, bytes.size() - cut);  // shorter and shorter
    taken += !is_refused(path);
  }
  CHECK(taken == 0);
  MESSAGE("truncations: " << tried << " of " << bytes.size()
                          << " bytes, taken for whole: " << taken);
}

TEST_CASE("crash: a checkpoint with any byte changed is refused") {
  const test::TempDir temp;
  const std::string bytes = checkpoint_bytes(temp / "run");
  const fs::path path = temp / "changed.safetensors";
  test::write_bytes(path, bytes);
  const Philox random(3, stream_of("damage"));
  const int file = open(path.c_str(), O_WRONLY);
  REQUIRE(file >= 0);
  const std::uint64_t tries = is_thorough() ? 100000 : 1000;
  std::int64_t taken = 0;
  for (std::uint64_t i = 0; i < tries; ++i) {
    const auto at = std::size_t(random.uniform(2 * i) * double(bytes.size()));
    const char flip = char(1 + std::size_t(random.uniform(2 * i + 1) * 255));
    const char changed = char(bytes[at] ^ flip);
    CHECK(pwrite(file, &changed, 1, off_t(at)) == 1);
    taken += !is_refused(path);
    CHECK(pwrite(file, &bytes[at], 1, off_t(at)) == 1);
  }
  close(file);
  CHECK(taken == 0);
  CHECK_FALSE(is_refused(path));
  MESSAGE("changed bytes: " << tries << " in " << bytes.size() << ", taken for whole: " << taken);
}

}  // namespace
}  // namespace keel::train
