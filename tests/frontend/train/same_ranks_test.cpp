// Ranks that no longer hold the same are named.
#include "frontend/train/same_ranks.h"

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "frontend/train/trainer.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thread_ranks.h"

namespace keel::train {
namespace {

// The error of so many ranks, some of which hold the value 2 and the others 1.
std::string told_of(int ranks, const std::vector<int>& others) {
  std::string told;
  test::run_ranks(ranks, [&](Communicator& all) {
    io::TensorFile content;
    const bool is_other = std::ranges::find(others, all.rank()) != others.end();
    content.tensors.emplace("w", Tensor::scalar(is_other ? 2.f : 1.f));
    try {
      expect_same_content(all, content, "has other weights");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kBadInput);
      if (all.rank() == 0) told = error.what();
    }
  });
  return told;
}

TEST_CASE("same ranks: the one that differs from most is named, whichever it is") {
  CHECK(told_of(1, {0}).empty());
  CHECK(told_of(3, {}).empty());
  CHECK(told_of(3, {2}) == "rank 2 has other weights than rank 0");
  CHECK(told_of(3, {0}) == "rank 0 has other weights than rank 1");
  CHECK(told_of(2, {1}) == "rank 1 has other weights than rank 0");
}

// The error of three ranks that have these facts.
std::string told_of_facts(const std::vector<RankFacts>& facts) {
  std::string told;
  test::run_ranks(int(facts.size()), [&](Communicator& all) {
    try {
      expect_same_facts(all, facts[std::size_t(all.rank())]);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kBadInput);
      if (all.rank() == 0) told = error.what();
    }
  });
  return told;
}

TEST_CASE("same ranks: the fact that differs is named, with what was expected and got") {
  const RankFacts usual{{"build", "1.0"}, {"bf16", "native"}, {"train.lr", "0.1"}};
  RankFacts emulated = usual, faster = usual, shorter = usual;
  emulated[1].second = "emulated";
  faster[2].second = "0.2";
  shorter.pop_back();
  CHECK(told_of_facts({usual, usual, usual}).empty());
  CHECK(told_of_facts({emulated}).empty());
  CHECK(told_of_facts({usual, emulated, usual}) ==
        "rank 1 has another bf16 than rank 0: expected 'native', got 'emulated'");
  CHECK(told_of_facts({faster, usual, usual}) ==
        "rank 0 has another train.lr than rank 1: expected '0.1', got '0.2'");
  CHECK(told_of_facts({usual, shorter}) ==
        "rank 1 has another train.lr than rank 0: expected '0.1', got ''");
  CHECK_FALSE(told_of_facts({shorter, usual}).empty());
}

// A communicator in which one rank receives a wrong bit of a sum, once.
class DriftingRank final : public Communicator {
 public:
  DriftingRank(Communicator& all, int sums) : all_(all), sums_(sums) {}

  int rank() const override { return all_.rank(); }
  int size() const override { return all_.size(); }
  std::string description() const override { return all_.description(); }
  void exchange(std::span<const Bytes> to, std::span<const Room> from) override {
    all_.exchange(to, from);
    ++exchanges_;
  }
  void gather(Bytes mine, std::span<const Room> from) override {
    all_.gather(mine, from);
    // The slices of a sum are gathered after they were exchanged.
    // In the highest byte of a float, for a lower bit may be lost in the update.
    if (rank() == 1 && exchanges_ == sums_) from[0][3] ^= std::byte{0x3f};
    if (exchanges_ == sums_) ++exchanges_;
  }
  void add_up(std::span<float> values) override { all_.add_up(values); }
  void add_up(std::span<double> values) override { all_.add_up(values); }
  void wait_for_all() override { all_.wait_for_all(); }
  [[noreturn]] void end_all(int code) override { std::_Exit(code); }

 private:
  Communicator& all_;
  int sums_, exchanges_ = 0;
};

// How a training ends whose third update one of three ranks does with a wrong bit.
std::string end_of(const test::Settings& settings) {
  const test::TempDir temp;
  try {
    test::run_ranks(3, [&](Communicator& all) {
      using test::operator+;
      const Job job =
          test::small_job(test::Settings{"train.shards=3", "train.max_steps=9"} + settings);
      const auto backend = make_backend(default_backend());
      DriftingRank drifting(all, 3);
      RunOptions options{.folder = temp / "run", .quiet = true, .facts = {}};
      options.ranks = &drifting;
      Trainer(*backend, job, options).run();
    });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("same ranks: a rank that drifts is named at the next checkpoint or evaluation") {
  const std::string at = "rank 1 has another state after step ";
  CHECK(end_of({"train.checkpoint_every=2"}).starts_with(at + "4 than rank 0"));
  CHECK(end_of({"train.eval_every=5u"}).starts_with(at + "5 than rank 0"));
  CHECK(end_of({}).starts_with(at));  // of the epoch that is over
}

}  // namespace
}  // namespace keel::train
