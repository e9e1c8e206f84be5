// The `keel` program. Data goes to stdout, messages to stderr, and every error is one line with a
// documented exit code.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "frontend/io/message.h"
#include "program/common.h"
#include "program/options.h"
#include "src/core/error.h"
#include "src/core/shown.h"

namespace keel::cli {
namespace {

int report(const std::string& message, ErrorKind kind) {
  try {
    io::say("keel: error: " + shown(shortened(message, kMostShownBytes)));
  } catch (const std::bad_alloc&) {
    io::say("keel: error: out of memory");
  }
  return static_cast<int>(kind);
}

// Threads and processes beyond what the system grants are a lack of memory to the user.
ErrorKind kind_of(const std::system_error& error) {
  const bool is_scarce = error.code() == std::errc::resource_unavailable_try_again ||
                         error.code() == std::errc::not_enough_memory;
  return is_scarce ? ErrorKind::kMemory : ErrorKind::kIo;
}

// Of exceptions of libraries, which say nothing but their text.
int report_unknown(const std::string& text) {
  // oneTBB's, of a thread that it cannot start.
  if (text.starts_with("pthread_create")) return report(text, ErrorKind::kMemory);
  return report("a bug of keel: " + text, ErrorKind::kInternal);
}

// Tells of the exception that is being handled, whatever it is, and returns the exit code.
int report_exception() {
  try {
    throw;
  } catch (const ReaderGone&) {
    return kReaderGoneCode;
  } catch (const Error& error) {
    return report(error.what(), error.kind());
  } catch (const std::bad_alloc&) {
    return report("out of memory", ErrorKind::kMemory);
  } catch (const std::system_error& error) {
    return report(error.what(), kind_of(error));
  } catch (const std::exception& error) {
    return report_unknown(error.what());
  } catch (...) {
    return report_unknown("something unknown was thrown");
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

int run(int argc, char** argv) {
  fill_closed_streams();
  // A reader that goes away and a file that may not grow further are errors of the call that meets
  // them, not signals to die of.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(end_after_exception);
  try {
    return parse_and_run(argc, argv);
  } catch (...) {
    return report_exception();
  }
}

}  // namespace
}  // namespace keel::cli

int main(int argc, char** argv) { return keel::cli::run(argc, argv); }
