// What a signal writes while a training runs, and what is left of a guard after its end.
#include "frontend/train/signals.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace keel::train {
namespace {

constexpr std::byte kUntouched{0xA5};

int signal_to_raise = 0;
void raise_it() { raise(signal_to_raise); }

// Raises the signal on a stack of its own, or only asks whether it may if the signal is 0. Returns
// how many bytes of that stack were written.
std::ptrdiff_t stack_written(int signal) {
  std::vector<std::byte> stack(1 << 18, kUntouched);
  ucontext_t here, there;
  getcontext(&there);
  there.uc_stack.ss_sp = stack.data();
  there.uc_stack.ss_size = stack.size();
  there.uc_link = &here;
  signal_to_raise = signal;
  makecontext(&there, raise_it, 0);
  swapcontext(&here, &there);
  return stack.end() - std::ranges::find_if(stack, [](std::byte b) { return b != kUntouched; });
}

}  // namespace

TEST_CASE("signals: the first is remembered, and leaves the thread's stack as it is") {
  {
    const SignalGuard guard;
    CHECK(SignalGuard::received() == 0);
    stack_written(0);  // finds the functions that it calls
    const std::ptrdiff_t alone = stack_written(0);
    CHECK(stack_written(SIGTERM) == alone);
    CHECK(SignalGuard::received() == SIGTERM);
    CHECK(stack_written(SIGINT) == alone);
    CHECK(SignalGuard::received() == SIGINT);
  }
  const SignalGuard again;
  CHECK(SignalGuard::received() == 0);
}

TEST_CASE("signals: a guard gives the thread's own stack for signals back") {
  std::vector<std::byte> own(1 << 17);
  stack_t mine{}, before{}, after{};
  mine.ss_sp = own.data();
  mine.ss_size = own.size();
  REQUIRE(sigaltstack(&mine, &before) == 0);
  { const SignalGuard guard; }
  CHECK(sigaltstack(&before, &after) == 0);
  CHECK(after.ss_sp == own.data());
  CHECK(after.ss_size == own.size());
}

}  // namespace keel::train
