// How data come from the host by two streams or one: against a device whose streams go on in any
// order that events allow.
#include "backends/cuda/staging.h"

#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <random>
#include <vector>

namespace keel::cuda {
namespace {

constexpr std::size_t kHalf = 1024;

// An event is reached when a stream has come to where it was recorded last.
struct Event {
  int recorded = 0, reached = 0;
};

struct Task {
  std::function<void()> work;
  const Event* after = nullptr;  // it may not begin before the event was reached so often
  int times = 0;
};

// Device memory and two streams, which run only when they are told to.
class Streams : public StagingDevice {
 public:
  explicit Streams(unsigned seed) : random_(seed), pinned_(2 * kHalf), ahead_(2 * kHalf) {}

  std::byte* pinned() override { return pinned_.data(); }
  void fetch(int half, std::size_t offset, std::size_t bytes) override {
    go_on();
    copies_.push_back({[this, offset, bytes] {
      std::memcpy(ahead_.data() + offset, pinned_.data() + offset, bytes);
    }});
    record(fetched_[half], copies_);
  }
  void put(std::byte* dst, int half, std::size_t offset, std::size_t bytes) override {
    go_on();
    wait(fetched_[half], work_);
    work_.push_back(
        {[this, dst, offset, bytes] { std::memcpy(dst, ahead_.data() + offset, bytes); }});
  }
  void leave(int half) override { record(free_[half], work_); }
  void let_fetch_wait(int half) override { wait(free_[half], copies_); }
  void wait_fetched(int half) override {
    const int times = fetched_[half].recorded;
    while (fetched_[half].reached < times) {
      if (step(copies_)) continue;
      ++waits_for_work;
      is_busy = false;
      if (!step(work_)) FAIL("the streams wait for each other");
    }
  }
  // Both streams run to their end.
  void finish() {
    is_busy = false;
    while (step(copies_) || step(work_)) continue;
    REQUIRE(copies_.empty());
    REQUIRE(work_.empty());
  }

  bool is_busy = false;  // the stream of work has a long step before it
  int waits_for_work = 0;

 private:
  using Stream = std::deque<Task>;

  static void record(Event& event, Stream& stream) {
    ++event.recorded;
    stream.push_back({[&event] { ++event.reached; }});
  }
  static void wait(const Event& event, Stream& stream) {
    stream.push_back({[] {}, &event, event.recorded});
  }
  bool step(Stream& stream) {
    if (stream.empty() || (is_busy && &stream == &work_)) return false;
    const Task task = stream.front();
    if (task.after != nullptr && task.after->reached < task.times) return false;
    stream.pop_front();
    task.work();
    return true;
  }
  void go_on() {
    for (unsigned n = random_() % 8; n > 0; --n) step(random_() % 2 == 0 ? copies_ : work_);
  }

  std::mt19937 random_;
  std::vector<std::byte> pinned_, ahead_;
  Stream copies_, work_;
  Event fetched_[2], free_[2];
};

TEST_CASE("cuda staging: what is uploaded arrives, in whatever order the streams go on") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto owned = std::make_unique<Streams>(seed);
    Streams& streams = *owned;
    Staging staging(std::move(owned), kHalf);
    std::vector<std::byte> sent, got(20'000);
    while (sent.size() < got.size()) {
      // The source changes as soon as it is uploaded.
      std::vector<std::byte> source(std::min(got.size() - sent.size(), 1 + random() % 3000));
      for (std::byte& byte : source) byte = std::byte(random());
      streams.is_busy = random() % 3 == 0;
      staging.upload(got.data() + sent.size(), source.data(), source.size());
      sent.insert(sent.end(), source.begin(), source.end());
    }
    streams.finish();
    CHECK(got == sent);
  }
}

TEST_CASE("cuda staging: four halves are on their way before the host waits for a running step") {
  auto owned = std::make_unique<Streams>(1);
  Streams& streams = *owned;
  Staging staging(std::move(owned), kHalf);
  const std::vector<std::byte> source(4 * kHalf);
  std::vector<std::byte> got(source.size());
  streams.is_busy = true;
  staging.upload(got.data(), source.data(), source.size());
  CHECK(streams.waits_for_work == 0);
  CHECK(streams.is_busy);
  staging.upload(got.data(), source.data(), 1);
  CHECK(streams.waits_for_work > 0);
  streams.finish();
}

// A stream that runs only when the host waits for it, as far as it must.
class LateStream : public SmallStagingDevice {
 public:
  std::byte* pinned() override { return pinned_.data(); }
  void put(std::byte* dst, std::size_t offset, std::size_t bytes) override {
    REQUIRE(offset + bytes <= pinned_.size());
    work_.push_back(
        [this, dst, offset, bytes] { std::memcpy(dst, pinned_.data() + offset, bytes); });
  }
  void leave(int half) override {
    ++left_[half];
    work_.push_back([this, half] { ++free_[half]; });
  }
  void wait_free(int half) override {
    while (free_[half] < left_[half]) step();
  }
  void finish() {
    while (!work_.empty()) step();
  }

 private:
  void step() {
    work_.front()();
    work_.pop_front();
  }

  std::vector<std::byte> pinned_ = std::vector<std::byte>(2 * kHalf);
  std::deque<std::function<void()>> work_;
  int left_[2] = {}, free_[2] = {};
};

TEST_CASE("cuda staging: small copies arrive though the device reads them late") {
  auto owned = std::make_unique<LateStream>();
  LateStream& stream = *owned;
  SmallStaging staging(std::move(owned), kHalf);
  std::mt19937 random(1);
  std::vector<std::byte> sent, got(50'000);
  while (sent.size() < got.size()) {
    std::vector<std::byte> source(std::min(got.size() - sent.size(), 1 + random() % kHalf));
    for (std::byte& byte : source) byte = std::byte(random());
    staging.upload(got.data() + sent.size(), source.data(), source.size());
    sent.insert(sent.end(), source.begin(), source.end());
  }
  stream.finish();
  CHECK(got == sent);
}

}  // namespace
}  // namespace keel::cuda
