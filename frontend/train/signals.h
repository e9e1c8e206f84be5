// SIGINT, SIGTERM and SIGHUP as a request that the training loop answers after the current step.
#pragma once

#include <signal.h>

#include <cstddef>
#include <memory>

namespace keel::train {

// While it lives, the first of these signals is only remembered; a second one of the same kind ends
// the process as usual. SIGHUP, which a terminal sends when it is closed, stays ignored if whoever
// started the process asked for that (nohup).
//
// The signals are handled on a stack of their own. A product of oneDNN on AVX2 uses the stack
// pointer for an address in the heap (issue 4845 of uxlfoundation/oneDNN, mended there in March
// 2026), and what the system stores below that address for a handler would overwrite the heap. Only
// the thread that makes the guard has such a stack; the threads that the onednn backend starts take
// no signals.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // The signal that came, or 0. The program's exit code is then 128 + signal: 129 (SIGHUP), 130
  // (SIGINT) or 143 (SIGTERM).
  static int received();

 private:
  std::unique_ptr<std::byte[]> stack_;
  stack_t before_{};  // the thread's stack for signals before the guard's
};

}  // namespace keel::train
