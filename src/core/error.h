// The only exception type of keel, and the exit codes of the program, which follow from it.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace keel {

// The kind of an error. Its value is the exit code of the `keel` program.
enum class ErrorKind : int {
  kCheckFailed = 1,     // a comparison or self-check did not hold
  kUsage = 2,           // wrong command line, recipe or model description
  kBadInput = 3,        // wrong content of a file
  kIo = 4,              // the operating system refused to read or write
  kMemory = 5,          // an allocation failed or a size overflowed
  kDiverged = 6,        // a loss or gradient is not finite
  kBackendMissing = 7,  // the backend is not built in, or cannot run here
  kInternal = 70,       // a bug in keel: a graph breaks the engine's own rules
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  int exit_code() const { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

// Formats out of line, to keep the code small in the many places that can fail.
[[noreturn]] void fail_with(ErrorKind kind, fmt::string_view text, fmt::format_args args);

// Throws Error{kind} with a formatted one-line message.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  fail_with(kind, text, fmt::make_format_args(args...));
}

// Throws Error{kind} if `holds` is false. The message is formatted only then.
template <class... Args>
void check(bool holds, ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  if (!holds) [[unlikely]]
    fail(kind, text, std::forward<Args>(args)...);
}

}  // namespace keel
