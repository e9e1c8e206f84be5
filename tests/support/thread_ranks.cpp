#include "tests/support/thread_ranks.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

namespace keel::test {
namespace {

// The shared data of a group's ranks: the values that each offers to the others until all have
// taken them.
struct ThreadGroup {
  explicit ThreadGroup(int ranks) : barrier(ranks), offers(std::size_t(ranks)) {}

  std::barrier<> barrier;
  std::vector<std::vector<Communicator::Bytes>> offers;  // by rank, and by who takes it
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return int(group_.offers.size()); }
  std::string description() const override { return "threads"; }

  void exchange(std::span<const Bytes> to, std::span<const Room> from) override {
    group_.offers[std::size_t(rank_)].assign(to.begin(), to.end());
    group_.barrier.arrive_and_wait();
    for (std::size_t r = 0; r < from.size(); ++r) {
      const Bytes offered = group_.offers[r][std::size_t(rank_)];
      check(offered.size() == from[r].size(), ErrorKind::kInternal,
            "[ranks] rank {}: expected {} bytes of rank {}, got {}", rank_, from[r].size(), r,
            offered.size());
      if (!offered.empty()) std::memcpy(from[r].data(), offered.data(), offered.size());
    }
    group_.barrier.arrive_and_wait();
  }
  void gather(Bytes mine, std::span<const Room> from) override {
    exchange(std::vector<Bytes>(from.size(), mine), from);
  }
  void add_up(std::span<float> values) override { add_up_in_reverse(values); }
  void add_up(std::span<double> values) override { add_up_in_reverse(values); }
  [[noreturn]] void end_all(int code) override { std::_Exit(code); }
  void wait_for_all() override { group_.barrier.arrive_and_wait(); }

 private:
  // From the last rank to the first: another order than that of the tree.
  template <class T>
  void add_up_in_reverse(std::span<T> values) {
    std::vector<T> all(values.size() * group_.offers.size());
    std::vector<Room> rooms;
    for (std::size_t r = 0; r < group_.offers.size(); ++r) {
      rooms.push_back(
          std::as_writable_bytes(std::span(all).subspan(r * values.size(), values.size())));
    }
    gather(std::as_bytes(std::span<const T>(values)), rooms);
    std::ranges::fill(values, T(0));
    for (std::size_t r = group_.offers.size(); r-- > 0;) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += all[r * values.size() + i];
    }
  }

  ThreadGroup& group_;
  int rank_;
};

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  ThreadGroup group(ranks);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadRank own(group, rank);
        body(own);
      } catch (...) {
        errors[std::size_t(rank)] = std::current_exception();
        group.barrier.arrive_and_drop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace keel::test
