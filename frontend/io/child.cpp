#include "frontend/io/child.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "src/core/error.h"

namespace keel::io {
namespace {

// The settings for posix_spawnp: the child's descriptors and its process group.
class SpawnSettings {
 public:
  explicit SpawnSettings(const ChildOptions& options) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    const int streams[] = {options.in, options.out, options.err};
    for (int i = 0; i < 3; ++i) {
      if (streams[i] >= 0) posix_spawn_file_actions_adddup2(&actions_, streams[i], i);
    }
    if (!options.own_group) return;
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Child::Child(const std::vector<std::string>& command, const ChildOptions& options) {
  const SpawnSettings settings(options);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int problem = posix_spawnp(&pid_, words[0], settings.actions(), settings.attributes(),
                                   words.data(), environ);
  check(problem == 0, ErrorKind::kIo, "{}: {}", command[0], std::strerror(problem));
}

Child::~Child() {
  if (ended()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Child::signal(int number) const {
  if (!code_) kill(pid_, number);
}

std::optional<int> Child::ended() {
  int status = 0;
  if (!code_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return code_;
}

}  // namespace keel::io
