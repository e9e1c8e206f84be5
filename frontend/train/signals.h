// SIGINT and SIGTERM as a request that the training loop answers after the step it is in.
#pragma once

namespace keel::train {

// While it lives, the first SIGINT or SIGTERM is only remembered; a second one ends the process as
// usual.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // The signal that came, or 0. The program's exit code is then 128 + signal: 130 or 143.
  static int received();
};

}  // namespace keel::train
