// A child process: lines in and out, and one that is missing, ends or talks too much.
#include "bench/child_process.h"

#include <doctest/doctest.h>

#include <functional>

#include "src/core/error.h"

namespace keel::bench {
namespace {

ChildProcess shell(const std::string& script) { return ChildProcess({"sh", "-c", script}); }

ErrorKind kind_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    CAPTURE(std::string(error.what()));
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.kind();
  }
  return ErrorKind{};
}

TEST_CASE("child process: answers to requests, several lines at once, more than a buffer") {
  ChildProcess echo = shell("while read -r line; do echo \"got $line\"; echo; done");
  echo.send("one\ntwo\n");
  CHECK(echo.read_line() == "got one");
  CHECK(echo.read_line() == "");
  CHECK(echo.read_line() == "got two");
  CHECK(echo.read_line() == "");
  const std::string longer(100'000, 'x');
  echo.send(longer + "\n");
  CHECK(echo.read_line() == "got " + longer);
}

TEST_CASE("child process: bytes arrive as they are") {
  ChildProcess count = shell("head -c 300000 | wc -c");
  count.send(std::string(300'000, '\0'));
  CHECK(std::stoi(count.read_line()) == 300'000);
}

TEST_CASE("child process: one that is missing, ends, or never ends its line") {
  CHECK(kind_of([] { ChildProcess({"no-such-program-anywhere"}); }) == ErrorKind::kIo);
  ChildProcess ended = shell("echo last; exit 3");
  CHECK(ended.read_line() == "last");
  CHECK(kind_of([&] { ended.read_line(); }) == ErrorKind::kIo);
  CHECK(kind_of([&] { ended.send("anyone?"); }) == ErrorKind::kIo);
  ChildProcess endless = shell("exec 2>/dev/null; yes | tr -d '\\n'");
  CHECK(kind_of([&] { endless.read_line(); }) == ErrorKind::kBadInput);
}

}  // namespace
}  // namespace keel::bench
