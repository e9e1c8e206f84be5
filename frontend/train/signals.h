// SIGINT, SIGTERM and SIGHUP as a request that the training loop answers after the current step.
#pragma once

namespace keel::train {

// While it lives, the first of these signals is only remembered; a second one of the same kind ends
// the process as usual. SIGHUP, which a terminal sends when it is closed, stays ignored if the
// process was started with it ignored (nohup).
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // The signal that came, or 0. The program's exit code is then 128 + signal: 129 (SIGHUP), 130
  // (SIGINT) or 143 (SIGTERM).
  static int received();
};

}  // namespace keel::train
