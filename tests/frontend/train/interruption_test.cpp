// A signal at any moment of a run: it is heard soon, and the run goes on to the same files.
#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "backends/backends.h"
#include "tests/support/same_run.h"
#include "tests/support/signalled.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thread_ranks.h"

namespace keel::train {
namespace {

namespace fs = std::filesystem;
using test::operator+;
using test::Settings;
using test::small_job;
using test::train_in;

Summary train_with_signal(const fs::path& folder, const Settings& settings, std::int64_t at,
                          bool resume = false) {
  auto signal = std::make_shared<test::SignalAt>(test::SignalAt{.at = at});
  return train_in(folder, test::signalled(std::move(signal), settings), resume);
}

// Interrupts a run at its first batch, its second one, and so on, in training, validation, test and
// the measurements at the end, and lets it go on. Returns how many times it did.
int check_interruptions(const Settings& settings) {
  const test::TempDir temp;
  const fs::path straight = temp / "straight";
  train_in(straight,
           small_job(Settings{"model.hidden=8", "train.batch=64", "train.epochs=2"} + settings));
  int interruptions = 0;
  for (std::int64_t at = 1;; ++at) {
    CAPTURE(at);
    const fs::path folder = temp / "interrupted";
    fs::remove_all(folder);
    const Summary first = train_with_signal(folder, settings, at);
    if (first.signal == 0) {
      test::check_same_files(folder, straight);
      return interruptions;
    }
    ++interruptions;
    CHECK(first.signal == SIGTERM);
    CHECK_FALSE(fs::exists(RunFolder{folder}.result()));
    CHECK(train_with_signal(folder, settings, 0, true).signal == 0);
    test::check_same_files(folder, straight);
  }
}

TEST_CASE("interruption: at every batch of a run, the resumed run has the same files" *
          doctest::test_suite("slow")) {
  // 8 updates, 2 validations and 2 tests, and 4 measurements at the end.
  CHECK(check_interruptions({"train.average_last=2", "train.keep_checkpoints=2", "train.lr=1e-2",
                             "train.test_every=1e", "train.log_every=1", "model.norm=batchnorm"}) >=
        15);
  CHECK(check_interruptions({"train.average_last=3", "train.checkpoint_every=2", "train.lr=1e-2",
                             "train.eval_every=3u", "train.test_every=2u"}) >= 15);
}

TEST_CASE("interruption: a run that is interrupted twice between two checkpoints") {
  const Settings settings{"train.average_last=2", "train.keep_checkpoints=2", "train.lr=1e-2"};
  const test::TempDir temp;
  train_in(temp / "straight",
           small_job(Settings{"model.hidden=8", "train.batch=64", "train.epochs=2"} + settings));
  CHECK(train_with_signal(temp / "run", settings, 2).signal == SIGTERM);
  CHECK(train_with_signal(temp / "run", settings, 2, true).signal == SIGTERM);
  // It goes on from one file of its own, beside those that the recipe asked for.
  CHECK(CheckpointStore(RunFolder{temp / "run"}.checkpoints(), {}).paths().size() == 1);
  train_with_signal(temp / "run", settings, 0, true);
  test::check_same_files(temp / "run", temp / "straight");
}

TEST_CASE("interruption: what was left undone is said") {
  const test::TempDir temp;
  std::vector<std::string> undone;
  for (std::int64_t at = 1;; ++at) {
    fs::remove_all(temp / "run");
    const Summary summary = train_with_signal(temp / "run", {"train.test_every=1e"}, at);
    if (summary.signal == 0) break;
    if (undone.empty() || undone.back() != summary.undone) undone.push_back(summary.undone);
  }
  CHECK(undone == std::vector<std::string>{"", "the validation", "the test", "", "the validation",
                                           "the test", "the measurements at the end"});
}

TEST_CASE("interruption: a second one just after a validation that was made up for") {
  const Settings settings{"train.eval_every=3u", "train.log_every=1", "train.lr=1e-6"};
  const test::TempDir temp;
  train_in(temp / "straight",
           small_job(Settings{"model.hidden=8", "train.batch=64", "train.epochs=2"} + settings));
  int synthetic_for = 0;
  for (std::int64_t at = 1; synthetic_for < 2; ++at) {
    const fs::path folder = temp / fmt::format("{}", at);
    const Summary first = train_with_signal(folder, settings, at);
    REQUIRE(first.signal == SIGTERM);
    if (first.undone != "the validation") continue;
    ++synthetic_for;
    for (std::int64_t again : {1, 1, 2}) train_with_signal(folder, settings, again, true);
    train_with_signal(folder, settings, 0, true);
    test::check_same_files(folder, temp / "straight");
  }
}

TEST_CASE("interruption: the average is of checkpoints that the recipe asked for") {
  const Settings settings{"train.average_last=3", "train.lr=1e-2", "train.epochs=3"};
  const test::TempDir temp;
  // After the epochs at 4 and 8, and once more by an interruption.
  const std::int64_t step = train_with_signal(temp / "run", settings, 13).state.step;
  REQUIRE((step > 8 && step < 12));
  train_with_signal(temp / "run", settings, 0, true);
  CHECK(io::read_safetensors(temp / "run/average.safetensors").metadata.at("average_of") ==
        "step-00000012 step-00000008 step-00000004");
}

// How an evaluation ends of which one of so many ranks gets a signal after so many batches: the
// signal that each rank was told, and the batches that it ran.
struct End {
  int signal = 0;
  std::int64_t batches = 0;
};
std::vector<End> interrupted(int ranks, int hearing, std::int64_t after, std::string_view model,
                             std::int64_t batch) {
  std::vector<End> ends(std::size_t(ranks), End{});
  test::run_ranks(ranks, [&](Communicator& all) {
    End& end = ends[std::size_t(all.rank())];
    const Job job = small_job({}, model);
    const auto backend = make_backend(default_backend());
    Variables variables(*backend, 1);
    Evaluator evaluator(*backend, variables, job);
    evaluator.share(all);
    evaluator.tell([&](std::int64_t, std::int64_t) { ++end.batches; });
    evaluator.heed([&] { return all.rank() == hearing && end.batches >= after ? SIGTERM : 0; });
    try {
      evaluator.run(*job.splits().stream(task::Split::kTest, {.batch = batch, .shard_range = {}}));
    } catch (const Interrupted& by) {
      end.signal = by.signal;
    }
  });
  return ends;
}

TEST_CASE("interruption: an evaluation ends after the batch in which the signal came") {
  for (const int ranks : {1, 3}) {
    for (int hearing = 0; hearing < ranks; ++hearing) {
      for (const End& end : interrupted(ranks, hearing, 2, "mnist_mlp", 7)) {
        CHECK(end.signal == SIGTERM);
        CHECK(end.batches == 2);
      }
    }
  }
  CHECK(interrupted(2, 0, 1000, "mnist_mlp", 7)[1].signal == 0);
}

TEST_CASE("interruption: a search of translations ends between two of its batches") {
  // One batch of the evaluation, and then batches of the search.
  for (const int ranks : {1, 2}) {
    for (const End& end : interrupted(ranks, ranks - 1, 3, "translation", 4096)) {
      CHECK(end.signal == SIGTERM);
      CHECK(end.batches <= 1 + 16);
    }
  }
  const std::vector<End> whole = interrupted(2, 0, 100000, "translation", 4096);
  CHECK(whole[0].signal == 0);
  CHECK(whole[0].batches > 3);
}

}  // namespace
}  // namespace keel::train
