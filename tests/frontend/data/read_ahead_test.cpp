// Reading ahead changes no batch, hides no failure, and asks the inner stream from one thread at a
// time.
#include "frontend/data/read_ahead.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>

#include "src/core/rng.h"

namespace keel::data {
namespace {

using namespace std::chrono_literals;
using Key = std::pair<std::uint32_t, std::int64_t>;

// A record of the events in a stream, which outlives it.
struct Journal {
  std::atomic<int> inside = 0, overlaps = 0, made = 0;
  std::mutex mutex;
  std::vector<std::pair<Key, std::thread::id>> asked;
};

// Batch (epoch, step) holds the number 1000 epoch + step in one buffer, which every call
// overwrites. An epoch has 5 + epoch % 3 steps.
class Numbers final : public Stream {
 public:
  explicit Numbers(std::shared_ptr<Journal> journal) : journal_(std::move(journal)) {
    batch_.values.emplace_back(DType::kI32, Shape{1});
  }
  std::chrono::milliseconds delay{0};
  std::set<Key> broken;

  const std::string& source() const override { return source_; }
  std::int64_t rows() const override { return 7; }
  std::vector<Sizes> shapes() const override { return {{1}}; }
  std::vector<Skipped> skipped() const override { return {{2, "why"}}; }
  std::int64_t steps(std::uint32_t epoch) override {
    const Inside inside(*journal_);
    if (broken.contains({epoch, -1})) throw std::runtime_error("no steps");
    return 5 + epoch % 3;
  }
  double items(std::uint32_t epoch, std::int64_t step) override {
    const Inside inside(*journal_);
    return epoch + static_cast<double>(step);
  }
  const Batch& at(std::uint32_t epoch, std::int64_t step) override {
    const Inside inside(*journal_);
    {
      const std::lock_guard lock(journal_->mutex);
      journal_->asked.emplace_back(Key{epoch, step}, std::this_thread::get_id());
    }
    std::this_thread::sleep_for(delay);
    if (broken.contains({epoch, step})) throw std::runtime_error("broken batch");
    batch_.sizes = {1};
    batch_.rows = {step};
    batch_.items = 3;
    batch_.values[0].as<std::int32_t>()[0] = static_cast<std::int32_t>(1000 * epoch + step);
    ++journal_->made;
    return batch_;
  }
  const Batch& pick(std::span<const std::int64_t> rows) override {
    const Inside inside(*journal_);
    batch_.rows.assign(rows.begin(), rows.end());
    return batch_;
  }

 private:
  // Counts calls that begin while another is under way.
  struct Inside {
    explicit Inside(Journal& journal) : journal(journal) {
      journal.overlaps += journal.inside.fetch_add(1) != 0;
    }
    ~Inside() { journal.inside.fetch_sub(1); }
    Journal& journal;
  };

  std::shared_ptr<Journal> journal_;
  std::string source_ = "numbers";
  Batch batch_;
};

struct Fixture {
  std::shared_ptr<Journal> journal = std::make_shared<Journal>();
  std::unique_ptr<Numbers> inner = std::make_unique<Numbers>(journal);
};

void check_batch(ReadAhead& stream, std::uint32_t epoch, std::int64_t step) {
  const Batch& batch = stream.at(epoch, step);
  CHECK(batch.values.at(0).as<std::int32_t>()[0] == static_cast<std::int32_t>(1000 * epoch + step));
  CHECK(batch.sizes == Sizes{1});
  CHECK(batch.rows == std::vector<std::int64_t>{step});
  CHECK(batch.items == 3);
}

TEST_CASE("read ahead: the batches in their order, over the ends of epochs") {
  Fixture f;
  ReadAhead stream(std::move(f.inner));
  for (std::uint32_t epoch = 0; epoch < 6; ++epoch) {
    REQUIRE(stream.steps(epoch) == 5 + epoch % 3);
    for (std::int64_t step = 0; step < stream.steps(epoch); ++step) {
      check_batch(stream, epoch, step);
      CHECK(stream.items(epoch, step) == epoch + static_cast<double>(step));
    }
  }
  CHECK(f.journal->overlaps == 0);
  CHECK(stream.source() == "numbers");
  CHECK(stream.rows() == 7);
  CHECK(stream.shapes().size() == 1);
  CHECK(stream.skipped().at(0).rows == 2);
}

TEST_CASE("read ahead: every batch but the first is made by the other thread, once") {
  Fixture f;
  {
    ReadAhead stream(std::move(f.inner));
    for (std::int64_t step = 0; step < 5; ++step) check_batch(stream, 0, step);
    check_batch(stream, 1, 0);
    stream.steps(0);  // waits for the batch after the last one
  }
  const auto& asked = f.journal->asked;
  REQUIRE(asked.size() == 7);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    CHECK(asked[i].first == (i < 5 ? Key{0, std::int64_t(i)} : Key{1, std::int64_t(i) - 5}));
    CHECK((asked[i].second == std::this_thread::get_id()) == (i == 0));
  }
}

// Were the next batch only made when it is asked for, this would wait for ever.
TEST_CASE("read ahead: the present batch stays while the next is made") {
  Fixture f;
  ReadAhead stream(std::move(f.inner));
  const Batch& batch = stream.at(0, 2);
  while (f.journal->made < 2) std::this_thread::sleep_for(1ms);
  CHECK(batch.values.at(0).as<std::int32_t>()[0] == 2);
  CHECK(batch.rows == std::vector<std::int64_t>{2});
}

TEST_CASE("read ahead: a slow stream and a user who does not wait") {
  Fixture f;
  f.inner->delay = 5ms;
  ReadAhead stream(std::move(f.inner));
  for (std::int64_t step = 0; step < 5; ++step) check_batch(stream, 0, step);
  check_batch(stream, 2, 4);
  check_batch(stream, 2, 5);
  CHECK(f.journal->overlaps == 0);
}

TEST_CASE("read ahead: any order of asking") {
  Fixture f;
  ReadAhead stream(std::move(f.inner));
  const Philox philox(1, stream_of("read_ahead"));
  for (std::uint64_t i = 0; i < 2000; i += 3) {
    const std::uint32_t epoch = philox.below(i, 4), step = philox.below(i + 1, 5);
    const std::uint32_t calls = 1 + philox.below(i + 2, 3);  // runs of steps, some of them in order
    for (std::uint32_t more = 0; more < calls && step + more < stream.steps(epoch); ++more) {
      check_batch(stream, epoch, step + more);
    }
  }
  check_batch(stream, 3, 1);
  check_batch(stream, 3, 1);
  CHECK(f.journal->overlaps == 0);
}

TEST_CASE("read ahead: a failure surfaces where its batch is asked for, and only there") {
  Fixture f;
  f.inner->broken = {{0, 2}};
  ReadAhead stream(std::move(f.inner));
  check_batch(stream, 0, 0);
  check_batch(stream, 0, 1);
  CHECK_THROWS_WITH(stream.at(0, 2), "broken batch");
  CHECK_THROWS_WITH(stream.at(0, 2), "broken batch");
  check_batch(stream, 0, 3);
  check_batch(stream, 0, 1);  // the next is broken again, but nobody asks for it
  check_batch(stream, 1, 0);
}

TEST_CASE("read ahead: an epoch that cannot be counted") {
  Fixture f;
  f.inner->broken = {{1, -1}};
  ReadAhead stream(std::move(f.inner));
  check_batch(stream, 0, 4);
  check_batch(stream, 1, 0);
  CHECK_THROWS_WITH(stream.steps(1), "no steps");
  check_batch(stream, 1, 1);
  check_batch(stream, 2, 0);
}

TEST_CASE("read ahead: ends in the middle of a batch, and without one") {
  for (int i = 0; i < 20; ++i) {
    Fixture f;
    f.inner->delay = 2ms;
    ReadAhead stream(std::move(f.inner));
    if (i % 2 == 0) check_batch(stream, 0, 0);
    if (i % 4 == 0) std::this_thread::sleep_for(1ms);
  }
}

TEST_CASE("read ahead: rows that are picked come between batches, and disturb none") {
  const auto journal = std::make_shared<Journal>();
  ReadAhead ahead(std::make_unique<Numbers>(journal));
  CHECK(ahead.at(0, 0).rows == std::vector<std::int64_t>{0});
  const std::int64_t some[] = {4, 2};
  CHECK(ahead.pick(some).rows == std::vector<std::int64_t>{4, 2});
  CHECK(ahead.at(0, 1).rows == std::vector<std::int64_t>{1});
}

}  // namespace
}  // namespace keel::data
