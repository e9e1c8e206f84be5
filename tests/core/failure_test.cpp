// Exceptions of every kind, as the user sees them: a kind, which is the exit code, and a text.
#include "src/core/failure.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

namespace keel {
namespace {

template <class Action>
Failure failure_of(const Action& action) {
  try {
    action();
  } catch (...) {
    return current_failure();
  }
  return {ErrorKind::kCheckFailed, "nothing was thrown"};
}

void check_failure(const Failure& got, int code, const std::string& text) {
  CAPTURE(got.text);
  CHECK(int(got.kind) == code);
  CHECK(got.text == text);
}

TEST_CASE("failure: an error of ours keeps its kind and its text") {
  for (const ErrorKind kind : {ErrorKind::kUsage, ErrorKind::kBadInput, ErrorKind::kIo,
                               ErrorKind::kDiverged, ErrorKind::kInternal}) {
    check_failure(failure_of([&] { fail(kind, "{} apples", 3); }), int(kind), "3 apples");
  }
}

TEST_CASE("failure: what the system refuses is I/O, and memory where it is short of something") {
  const Failure missing = failure_of([] { (void)std::filesystem::file_size("/nowhere/at all"); });
  CHECK(int(missing.kind) == 4);
  CHECK(missing.text.find("/nowhere/at all") != std::string::npos);
  const auto thrown = [](std::errc code) {
    return failure_of([&] { throw std::system_error(std::make_error_code(code), "a call"); });
  };
  CHECK(int(thrown(std::errc::permission_denied).kind) == 4);
  CHECK(int(thrown(std::errc::resource_unavailable_try_again).kind) == 5);
  CHECK(int(thrown(std::errc::not_enough_memory).kind) == 5);
  CHECK(thrown(std::errc::not_enough_memory).text.starts_with("a call: "));
}

TEST_CASE("failure: an allocation that fails is memory") {
  check_failure(failure_of([] { throw std::bad_alloc(); }), 5, "out of memory");
  check_failure(failure_of([] { throw std::bad_array_new_length(); }), 5, "out of memory");
}

TEST_CASE("failure: what nobody expected is a bug of keel") {
  check_failure(failure_of([] { throw std::logic_error("no such case"); }), 70,
                "a bug of keel: no such case");
  check_failure(failure_of([] { throw 3; }), 70, "a bug of keel: something unknown was thrown");
  check_failure(failure_of([] { throw std::runtime_error("pthread_create has failed"); }), 5,
                "pthread_create has failed");
}

}  // namespace
}  // namespace keel
