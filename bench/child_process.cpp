#include "bench/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "src/core/error.h"

namespace keel::bench {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;

// posix_spawnp's list of what the child does with its descriptors.
struct FileActions {
  FileActions() { posix_spawn_file_actions_init(&list); }
  ~FileActions() { posix_spawn_file_actions_destroy(&list); }
  posix_spawn_file_actions_t list;
};

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command) : name_(command[0]) {
  int ends[2];
  check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, ErrorKind::kIo,
        "{}: no pipe to it: {}", name_, std::strerror(errno));
  FileActions actions;
  posix_spawn_file_actions_adddup2(&actions.list, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions.list, ends[1], STDOUT_FILENO);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int problem = posix_spawnp(&pid_, words[0], &actions.list, nullptr, words.data(), environ);
  close(ends[1]);
  socket_ = ends[0];
  if (problem == 0) return;
  close(socket_);
  fail(ErrorKind::kIo, "{}: {}", name_, std::strerror(problem));
}

ChildProcess::~ChildProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(socket_);
}

void ChildProcess::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
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
    const ssize_t count = read(socket_, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    check(count > 0, ErrorKind::kIo, "{}: expected an answer, but it ended", name_);
    read_.append(bytes, std::size_t(count));
  }
  const std::string line = read_.substr(0, end);
  read_.erase(0, end + 1);
  return line;
}

}  // namespace keel::bench
