#include "frontend/train/signals.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace keel::train {
namespace {

volatile std::sig_atomic_t received_signal = 0;

void remember(int signal) {
  received_signal = signal;
  std::signal(signal, SIG_DFL);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(signal, &action, nullptr);
}

void handle_all(void (*handler)(int)) {
  handle(SIGINT, handler);
  handle(SIGTERM, handler);
  struct sigaction present {};
  sigaction(SIGHUP, nullptr, &present);
  if (present.sa_handler != SIG_IGN) handle(SIGHUP, handler);
}

// The system says how much of a stack a signal takes, for that depends on the vector registers.
std::size_t signal_stack_bytes() {
  constexpr long kLeast = 1 << 16;
  return static_cast<std::size_t>(std::max(kLeast, sysconf(_SC_SIGSTKSZ)));
}

}  // namespace

SignalGuard::SignalGuard() : stack_(std::make_unique<std::byte[]>(signal_stack_bytes())) {
  stack_t own{};
  own.ss_sp = stack_.get();
  own.ss_size = signal_stack_bytes();
  sigaltstack(&own, &before_);
  received_signal = 0;
  handle_all(remember);
}

SignalGuard::~SignalGuard() {
  handle_all(SIG_DFL);
  sigaltstack(&before_, nullptr);
}

int SignalGuard::received() { return received_signal; }

}  // namespace keel::train
