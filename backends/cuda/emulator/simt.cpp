#include "backends/cuda/emulator/simt.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <mutex>
#include <numeric>
#include <optional>
#include <vector>

#include "src/core/error.h"
#include "src/core/rng.h"

namespace keel::cuda::simt {
namespace {

using boost::context::fiber;

constexpr std::size_t kStack = 64 << 10;
constexpr int kLanes = 32;

enum class State { kReady, kAtBarrier, kAtTeam, kAtExchange, kDone };

// One of a block's threads. Its fiber lives on from block to block and kernel to kernel.
struct Thread {
  fiber code, scheduler;
  State state = State::kDone;
  int line = 0;  // of the barrier or exchange it waits at
};

// The exchange that a warp's threads are gathering for.
struct Warp {
  unsigned mask = 0, arrived = 0;
  int line = 0;
  std::uint64_t given[kLanes], result[kLanes];
};

struct Machine {
  const std::function<void()>* kernel = nullptr;
  int threads = 0;
  std::vector<Thread> pool;
  std::vector<Warp> warps;
  std::exception_ptr fault;
  std::uint64_t seed = 0;
};

Machine& machine() {
  static Machine machine;
  return machine;
}

Thread& current() { return machine().pool[here.thread.x]; }

// Back to the scheduler, until it resumes this thread; by then the pool may have moved.
void wait(State state, int line) {
  current().state = state;
  current().line = line;
  fiber scheduler = std::move(current().scheduler).resume();
  current().scheduler = std::move(scheduler);
}

// A fiber runs the kernel of the day each time it is resumed after having finished.
fiber make_fiber(int index) {
  return fiber(std::allocator_arg, boost::context::fixedsize_stack(kStack),
               [index](fiber&& scheduler) {
                 Machine& m = machine();
                 m.pool[std::size_t(index)].scheduler = std::move(scheduler);
                 while (true) {
                   try {
                     (*m.kernel)();
                   } catch (const boost::context::detail::forced_unwind&) {
                     throw;
                   } catch (...) {
                     if (!m.fault) m.fault = std::current_exception();
                   }
                   wait(State::kDone, 0);
                 }
                 return fiber();
               });
}

// The order in which n things get their turn.
std::vector<int> turns(int n, std::uint64_t round) {
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const Machine& m = machine();
  if (m.seed == 0) return order;
  const Philox random(m.seed, stream_of("simt"), std::uint32_t(round));
  for (int i = n - 1; i > 0; --i) {
    std::swap(order[std::size_t(i)],
              order[random.below(here.serial * 1024 + std::uint64_t(i), std::uint32_t(i) + 1)]);
  }
  return order;
}

// The warps that get every eighth turn for a while: with a seed, each has a pace of its own.
std::vector<bool> slow_warps(std::uint64_t period) {
  const Machine& m = machine();
  std::vector<bool> slow(m.warps.size());
  const Philox random(m.seed, stream_of("simt pace"), std::uint32_t(period));
  for (std::size_t i = 0; i < slow.size() && m.seed != 0; ++i) {
    slow[i] = random.below(here.serial * 32 + i, 2) == 0;
  }
  return slow;
}

bool all_in(State state) {
  const Machine& m = machine();
  return std::all_of(m.pool.begin(), m.pool.begin() + m.threads,
                     [state](const Thread& t) { return t.state == state; });
}

std::string whereabouts(const Thread& thread) {
  switch (thread.state) {
    case State::kDone:
      return "has returned";
    case State::kAtTeam:
      return fmt::format("waits at line {} for its team", thread.line);
    case State::kAtExchange:
      return fmt::format("waits at line {} for lanes that do not come", thread.line);
    default:
      return fmt::format("waits at line {}", thread.line);
  }
}

[[noreturn]] void fail_divergence(int one, int other) {
  const std::vector<Thread>& pool = machine().pool;
  fail(ErrorKind::kCheckFailed, "[emulator] divergence in block {}: thread {} {}, thread {} {}",
       here.block.x, one, whereabouts(pool[std::size_t(one)]), other,
       whereabouts(pool[std::size_t(other)]));
}

// Lets everyone on who waits at a barrier that all have reached.
void pass_barrier() {
  Machine& m = machine();
  int first = 0;  // of those that wait
  while (m.pool[std::size_t(first)].state == State::kDone) ++first;
  const int line = m.pool[std::size_t(first)].line;
  for (int i = 0; i < m.threads; ++i) {
    Thread& thread = m.pool[std::size_t(i)];
    if (thread.state != State::kAtBarrier || thread.line != line) fail_divergence(first, i);
  }
  for (int i = 0; i < m.threads; ++i) m.pool[std::size_t(i)].state = State::kReady;
}

void run_block() {
  Machine& m = machine();
  ++here.serial;
  m.warps.assign(std::size_t(m.threads + kLanes - 1) / kLanes, {});
  for (int i = 0; i < m.threads; ++i) m.pool[std::size_t(i)].state = State::kReady;
  std::vector<bool> slow;
  bool progress = true;
  for (std::uint64_t round = 0; !all_in(State::kDone); ++round) {
    if (round % 64 == 0) slow = slow_warps(round / 64);
    const bool for_all = round % 8 == 0 || !progress;
    progress = false;
    for (int i : turns(m.threads, round)) {
      Thread& thread = m.pool[std::size_t(i)];
      if (thread.state != State::kReady || (slow[std::size_t(i / kLanes)] && !for_all)) continue;
      progress = true;
      here.thread.x = unsigned(i);
      thread.code = std::move(thread.code).resume();
      if (m.fault) std::rethrow_exception(m.fault);
    }
    if (!progress && for_all) pass_barrier();
  }
}

// Gives every participant its answer once the whole mask has arrived.
void complete(Warp& warp) {
  std::copy(std::begin(warp.given), std::end(warp.given), warp.result);
  const int first = int(here.thread.x) / kLanes * kLanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (warp.arrived >> lane & 1) machine().pool[std::size_t(first + lane)].state = State::kReady;
  }
  warp.arrived = 0;
}

// The lanes of this thread's warp that exist.
unsigned present_lanes() {
  const unsigned behind = here.threads.x - here.thread.x / kLanes * kLanes;
  return behind >= kLanes ? 0xffffffffu : (1u << behind) - 1;
}

[[noreturn]] void fail_mask(unsigned mask, int line) {
  fail(ErrorKind::kCheckFailed,
       "[emulator] line {}: mask {:#x} leaves out its own lane {} or names absent ones", line, mask,
       lane());
}

[[noreturn]] void fail_warp(const Warp& warp, unsigned mask, int line) {
  fail(
      ErrorKind::kCheckFailed,
      "[emulator] divergent warp: lane {} at line {} with mask {:#x}, others at line {} with {:#x}",
      lane(), line, mask, warp.line, warp.mask);
}

// This thread takes part in a warp-wide operation and returns when all others have.
Warp& gather(unsigned mask, std::uint64_t value, int line) {
  Warp& warp = machine().warps[here.thread.x / kLanes];
  const unsigned own = 1u << lane();
  if (!(mask & own) || (mask & ~present_lanes())) fail_mask(mask, line);
  if (warp.arrived != 0 && (warp.mask != mask || warp.line != line)) fail_warp(warp, mask, line);
  warp.mask = mask;
  warp.line = line;
  warp.given[lane()] = value;
  warp.arrived |= own;
  if (warp.arrived == mask) {
    complete(warp);
    return warp;
  }
  wait(State::kAtExchange, line);
  return warp;
}

}  // namespace

void set_order(std::uint64_t seed) { machine().seed = seed; }

void run(std::int64_t blocks, int threads, const std::function<void()>& kernel) {
  check(blocks > 0 && blocks < (std::int64_t{1} << 31) && threads > 0 && threads <= 1024,
        ErrorKind::kCheckFailed, "[emulator] a grid of {} blocks of {} threads", blocks, threads);
  static std::mutex mutex;  // threads of the host share the machine
  const std::lock_guard lock(mutex);
  ++counts.launches;
  Machine& m = machine();
  m.kernel = &kernel;
  m.threads = threads;
  here.blocks.x = unsigned(blocks);
  here.threads.x = unsigned(threads);
  for (int i = int(m.pool.size()); i < threads; ++i) m.pool.push_back({make_fiber(i), {}});
  try {
    for (int block : turns(int(blocks), 0)) {
      here.block.x = unsigned(block);
      run_block();
    }
  } catch (...) {
    m.pool.clear();  // unwinds what is still in the kernel
    m.fault = nullptr;
    throw;
  }
}

void sync_block(int line) { wait(State::kAtBarrier, line); }

void sync_team(int threads, int line) {
  const auto first = machine().pool.begin() + here.thread.x / unsigned(threads) * threads;
  current().state = State::kAtTeam;
  current().line = line;
  const bool is_complete = std::all_of(first, first + threads, [line](const Thread& t) {
    return t.state == State::kAtTeam && t.line == line;
  });
  if (!is_complete) return wait(State::kAtTeam, line);
  std::for_each(first, first + threads, [](Thread& t) { t.state = State::kReady; });
}

std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, int line) {
  if (source < 0 || source >= kLanes || !(mask >> source & 1)) {
    fail(ErrorKind::kCheckFailed,
         "[emulator] line {}: a shuffle from lane {}, which mask {:#x} does not name", line, source,
         mask);
  }
  return gather(mask, value, line).result[source];
}

unsigned ballot(unsigned mask, bool value, int line) {
  const Warp& warp = gather(mask, value, line);
  unsigned lanes = 0;
  for (int i = 0; i < kLanes; ++i) {
    if (mask >> i & 1 && warp.result[i]) lanes |= 1u << i;
  }
  return lanes;
}

void fail_access(const char* what, std::int64_t element, std::int64_t size) {
  fail(ErrorKind::kCheckFailed, "[emulator] block {} thread {}: {} element {} of {}", here.block.x,
       here.thread.x, what, element, size);
}

}  // namespace keel::cuda::simt
