#include "bench/child_process.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "src/core/error.h"

namespace keel::bench {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;

}  // namespace

ChildProcess::Ends ChildProcess::make_ends(const std::string& name) {
  int ends[2];
  check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, ErrorKind::kIo,
        "{}: no pipe to it: {}", name, std::strerror(errno));
  return {io::Descriptor(ends[0]), io::Descriptor(ends[1])};
}

ChildProcess::ChildProcess(const std::vector<std::string>& command)
    : ChildProcess(command, make_ends(command[0])) {}

ChildProcess::ChildProcess(const std::vector<std::string>& command, Ends ends)
    : name_(command[0]),
      socket_(std::move(ends.ours)),
      child_(command, {.in = ends.its.get(), .out = ends.its.get()}) {}

void ChildProcess::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    check(sent > 0, ErrorKind::kIo, "{}: expected a program that reads, but it ended", name_);
    bytes.remove_prefix(std::size_t(sent));
  }
}

std::string ChildProcess::read_line() {
  std::size_t end;
  while ((end = read_.find('\n')) == std::string::npos) {
    check(read_.size() <= kLongestLine, ErrorKind::kBadInput, "{}: a line of more than a MiB",
          name_);
    char bytes[4096];
    const ssize_t count = read(socket_.get(), bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    check(count > 0, ErrorKind::kIo, "{}: expected an answer, but it ended", name_);
    read_.append(bytes, std::size_t(count));
  }
  const std::string line = read_.substr(0, end);
  read_.erase(0, end + 1);
  return line;
}

}  // namespace keel::bench
