// The `keel` program. Data goes to stdout, messages to stderr, and every error is one line with a
// documented exit code.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <new>

#include "program/options.h"
#include "src/core/error.h"

namespace keel::cli {
namespace {

// Names out of files and arguments may hold line ends and a terminal's commands.
std::string one_line(std::string message) {
  std::ranges::replace_if(
      message, [](unsigned char c) { return c < ' ' || c == 0x7F; }, '?');
  return message;
}

int report(const std::string& message, ErrorKind kind) {
  fmt::print(stderr, "keel: error: {}\n", one_line(message));
  return static_cast<int>(kind);
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
  // A reader that goes away is an error to report, not a signal to die of.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return parse_and_run(argc, argv);
  } catch (const Error& error) {
    return report(error.what(), error.kind());
  } catch (const std::bad_alloc&) {
    return report("out of memory", ErrorKind::kMemory);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(error.what(), ErrorKind::kIo);
  }
}

}  // namespace
}  // namespace keel::cli

int main(int argc, char** argv) { return keel::cli::run(argc, argv); }
