// Messages show text from outside; no terminal obeys anything in it.
#include "frontend/io/message.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/captured_err.h"

namespace keel::io {
namespace {

using test::captured_err;

TEST_CASE("message: what a terminal would obey becomes a question mark") {
  CHECK(captured_err([] { say("a\x1b[31mb\rc\nd"); }) == "a?[31mb?c?d\n");
  CHECK(captured_err([] { warn("\u202e\u00e9\x9b"); }) == "warning: ?\u00e9?\n");
  CHECK(captured_err([] { show("\r\x1b[K"); }) == "\r\x1b[K");
}

TEST_CASE("message: characters stay whole where a long line is written in parts") {
  for (int before = 4090; before < 4100; ++before) {
    const std::string line =
        std::string(std::size_t(before), 'a') + "\u4e16\U0001f600" + std::string(5000, 'b');
    CHECK(captured_err([&] { say(line); }) == line + "\n");
  }
}

}  // namespace
}  // namespace keel::io
