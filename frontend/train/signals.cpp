#include "frontend/train/signals.h"

#include <csignal>

namespace keel::train {
namespace {

volatile std::sig_atomic_t received_signal = 0;

void remember(int signal) {
  received_signal = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

SignalGuard::SignalGuard() {
  received_signal = 0;
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

SignalGuard::~SignalGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int SignalGuard::received() { return received_signal; }

}  // namespace keel::train
