#include "frontend/train/signals.h"

#include <csignal>

namespace keel::train {
namespace {

volatile std::sig_atomic_t received_signal = 0;

void remember(int signal) {
  received_signal = signal;
  std::signal(signal, SIG_DFL);
}

void handle_all(void (*handler)(int)) {
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
  struct sigaction present {};
  sigaction(SIGHUP, nullptr, &present);
  if (present.sa_handler != SIG_IGN) std::signal(SIGHUP, handler);
}

}  // namespace

SignalGuard::SignalGuard() {
  received_signal = 0;
  handle_all(remember);
}

SignalGuard::~SignalGuard() { handle_all(SIG_DFL); }

int SignalGuard::received() { return received_signal; }

}  // namespace keel::train
