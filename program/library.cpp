// keel::program is the program as a function. Data goes to stdout, messages to stderr, and every
// error is one line with a documented exit code.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include "frontend/io/message.h"
#include "include/keel/program.h"
#include "program/common.h"
#include "program/options.h"
#include "src/core/failure.h"
#include "src/core/registry.h"
#include "src/core/shown.h"

namespace keel::cli {
namespace {

int report_failure() {
  ErrorKind kind = ErrorKind::kMemory;
  try {
    const Failure failure = current_failure();
    kind = failure.kind;
    io::say("keel: error: " + shortened(failure.text, kMostShownBytes));
  } catch (const std::bad_alloc&) {  // there is no memory for the text
    io::say("keel: error: out of memory");
  }
  return static_cast<int>(kind);
}

// Tells of the exception that is being handled, whatever it is, and returns the exit code.
int report_exception() {
  try {
    throw;
  } catch (const ReaderGone&) {
    return kReaderGoneCode;
  } catch (...) {
    return report_failure();
  }
}

// For exceptions that no handler can be reached by, such as those of a thread.
[[noreturn]] void end_after_exception() {
  std::_Exit(std::current_exception() ? report_exception() : int(ErrorKind::kInternal));
}

// A standard stream that is closed would be taken by the next file that is opened, and messages
// would end up in it. Reading from nothing takes its place, so that writing stays an error.
void fill_closed_streams() {
  while (true) {
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd > 2) close(fd);
    if (fd < 0 || fd > 2) return;
  }
}

// Threads get the stack that the shell allows, and the libraries need more than a few pages:
// without it the program would end by a signal, at some place.
void expect_stack() {
  constexpr rlim_t kLeast = rlim_t{1} << 20;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur == RLIM_INFINITY) return;
  check(stack.rlim_cur >= kLeast, ErrorKind::kMemory,
        "expected a stack of {} KiB or more, got {} KiB (ulimit -s)", kLeast >> 10,
        stack.rlim_cur >> 10);
}

int run(int argc, char** argv, const std::vector<Addition>& additions) {
  fill_closed_streams();
  // A reader that goes away and a file that may not grow further are errors of the call that meets
  // them, not signals to die of.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(end_after_exception);
  try {
    expect_stack();
    for (const Addition& addition : additions) addition.enter();
    const FrozenRegistries frozen;
    return parse_and_run(argc, argv);
  } catch (...) {
    return report_exception();
  }
}

}  // namespace
}  // namespace keel::cli

int keel::program(int argc, char** argv, const std::vector<Addition>& additions) {
  return keel::cli::run(argc, argv, additions);
}
