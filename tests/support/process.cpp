#include "tests/support/process.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "src/core/error.h"

namespace keel::test {
namespace {

constexpr uid_t kNobody = 65534;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> changed_environment(const ProcessOptions& options) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!options.environment.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : options.environment) {
    if (value) result.push_back(name + "=" + *value);
  }
  return result;
}

int memory_file(const char* name) {
  const int fd = memfd_create(name, MFD_CLOEXEC);
  check(fd >= 0, ErrorKind::kIo, "[process] no memory file for {}", name);
  return fd;
}

std::string content(int fd) {
  std::string text(std::size_t(lseek(fd, 0, SEEK_END)), '\0');
  check(pread(fd, text.data(), text.size(), 0) == std::ssize(text), ErrorKind::kIo,
        "[process] cannot read what the program wrote");
  return text;
}

void limit_files(std::int64_t bytes) {
  const rlimit limit{rlim_t(bytes), rlim_t(bytes)};
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_IGN);  // a write then fails instead of ending the process
}

}  // namespace

// Between fork and exec only calls that are safe beside other threads: everything is prepared.
Process::Process(const std::vector<std::string>& arguments, const ProcessOptions& options)
    : out_(memory_file("out")), err_(memory_file("err")) {
  std::vector<std::string> texts{KEEL_PROGRAM};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = changed_environment(options);
  const std::vector<char*> argv = pointers(texts), envp = pointers(variables);
  pid_ = fork();
  check(pid_ >= 0, ErrorKind::kIo, "[process] cannot fork");
  if (pid_ == 0) {
    become_program(const_cast<char**>(argv.data()), const_cast<char**>(envp.data()), options);
  }
}

void Process::become_program(char** arguments, char** environment,
                             const ProcessOptions& options) const {
  constexpr int kFailed = 127;  // as a shell says that it found no program
  dup2(open(options.in.empty() ? "/dev/null" : options.in.c_str(), O_RDONLY), STDIN_FILENO);
  const int out = options.out.empty() ? out_ : open(options.out.c_str(), O_WRONLY);
  dup2(out, STDOUT_FILENO);
  dup2(err_, STDERR_FILENO);
  if (options.close_out) close(STDOUT_FILENO);
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) _exit(kFailed);
  if (options.max_file_bytes > 0) limit_files(options.max_file_bytes);
  if (options.as_nobody && geteuid() == 0 &&
      (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
    _exit(kFailed);
  }
  execve(arguments[0], arguments, environment);
  _exit(kFailed);
}

Process::~Process() {
  if (!has_ended()) {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(out_);
  close(err_);
}

void Process::signal(int number) const {
  if (!status_) kill(pid_, number);
}

bool Process::has_ended() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_.has_value();
}

ProcessResult Process::wait() {
  using namespace std::chrono_literals;
  const auto deadline = std::chrono::steady_clock::now() + 2min;
  while (!has_ended()) {
    if (std::chrono::steady_clock::now() > deadline) signal(SIGKILL);
    std::this_thread::sleep_for(1ms);
  }
  const int code = WIFEXITED(*status_) ? WEXITSTATUS(*status_) : -WTERMSIG(*status_);
  return {code, content(out_), content(err_)};
}

ProcessResult run_keel(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  return Process(arguments, options).wait();
}

}  // namespace keel::test
