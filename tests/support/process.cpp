#include "tests/support/process.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
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
  // The address sanitizer looks for leaks in a thread of its own, which it could not start.
  const char* sanitizer = std::getenv("ASAN_OPTIONS");
  if ((options.max_threads > 0 || options.may_leak) && sanitizer != nullptr) {
    std::erase(result, fmt::format("ASAN_OPTIONS={}", sanitizer));
    result.push_back(fmt::format("ASAN_OPTIONS={}:detect_leaks=0", sanitizer));
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

void set_limit(__rlimit_resource resource, std::int64_t most) {
  const rlimit limit{rlim_t(most), rlim_t(most)};
  if (most > 0) setrlimit(resource, &limit);
}

void set_limits(const ProcessOptions& options) {
  set_limit(RLIMIT_FSIZE, options.max_file_bytes);
  set_limit(RLIMIT_AS, options.max_memory_bytes);
  set_limit(RLIMIT_NPROC, options.max_threads);
  set_limit(RLIMIT_STACK, options.max_stack_bytes);
}

// Redirects a stream to the file of that name, or to `otherwise` without one.
void redirect(int stream, const std::filesystem::path& path, int otherwise) {
  dup2(path.empty() ? otherwise : open(path.c_str(), O_WRONLY), stream);
}

// A pipe whose reading end is closed.
void lead_nowhere(int stream) {
  int ends[2];
  if (pipe(ends) != 0) return;
  dup2(ends[1], stream);
  close(ends[0]);
  close(ends[1]);
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
  set_streams(options);
  std::signal(SIGHUP, options.ignore_hangup ? SIG_IGN : SIG_DFL);
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) _exit(kFailed);
  if (options.as_nobody && geteuid() == 0 &&
      (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
    _exit(kFailed);
  }
  set_limits(options);
  execve(arguments[0], arguments, environment);
  _exit(kFailed);
}

void Process::set_streams(const ProcessOptions& options) const {
  redirect(STDOUT_FILENO, options.out, out_);
  redirect(STDERR_FILENO, options.err, err_);
  if (options.unread_out) lead_nowhere(STDOUT_FILENO);
  if (options.unread_err) lead_nowhere(STDERR_FILENO);
  if (options.close_out) close(STDOUT_FILENO);
  if (options.close_err) close(STDERR_FILENO);
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

void Process::await_handler(int number) {
  using namespace std::chrono_literals;
  const auto is_handled = [&] {
    std::ifstream status(fmt::format("/proc/{}/status", pid_));
    std::string word;
    std::uint64_t caught = 0;
    while (status >> word) {
      if (word == "SigCgt:" && status >> std::hex >> caught) break;
    }
    return (caught >> (number - 1) & 1) != 0;
  };
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!has_ended() && !is_handled() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(1ms);
  }
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
