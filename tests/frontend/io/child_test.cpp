// A child process: its streams, its end, signals, and that it does not outlive its owner.
#include "frontend/io/child.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "src/core/error.h"
#include "tests/support/temp_dir.h"

namespace keel::io {
namespace {

int code_of(Child& child) {
  while (!child.ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return *child.ended();
}

Child shell(const std::string& script, const ChildOptions& options = {}) {
  return Child({"sh", "-c", script}, options);
}

TEST_CASE("child: its exit code, or the signal that ended it") {
  Child fine = shell("exit 0"), failed = shell("exit 3"), killed = shell("kill -TERM $$");
  CHECK(code_of(fine) == 0);
  CHECK(code_of(failed) == 3);
  CHECK(code_of(killed) == 128 + SIGTERM);
}

TEST_CASE("child: standard streams go where they are told") {
  const test::TempDir temp;
  test::write_bytes(temp / "in", "question\n");
  const Descriptor in(open((temp / "in").c_str(), O_RDONLY | O_CLOEXEC)),
      out(open((temp / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)),
      err(open((temp / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Child child = shell("read -r line; echo got $line; echo oops >&2",
                      {.in = in.get(), .out = out.get(), .err = err.get()});
  CHECK(code_of(child) == 0);
  CHECK(test::read_bytes(temp / "out") == "got question\n");
  CHECK(test::read_bytes(temp / "err") == "oops\n");
}

TEST_CASE("child: a signal reaches it, and none is sent to one that has ended") {
  Child child = shell("exec sleep 100");
  CHECK_FALSE(child.ended().has_value());
  child.signal(SIGTERM);
  CHECK(code_of(child) == 128 + SIGTERM);
  child.signal(SIGTERM);
}

TEST_CASE("child: in a process group of its own, or in this one") {
  const auto groups_of = [](bool own) {
    const test::TempDir temp;
    const Descriptor out(open((temp / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    Child child =
        shell("cut -d' ' -f1,5 /proc/$$/stat", {.out = out.get(), .own_group = own});  // pid, group
    CHECK(code_of(child) == 0);
    const std::string text = test::read_bytes(temp / "out");
    return std::pair{std::stoi(text), std::stoi(text.substr(text.find(' ')))};
  };
  const auto [pid, group] = groups_of(true);
  CHECK(group == pid);
  CHECK(groups_of(false).second == getpgrp());
}

TEST_CASE("child: it ends with its owner") {
  const test::TempDir temp;
  int reading[2];
  REQUIRE(pipe2(reading, O_CLOEXEC) == 0);
  const Descriptor ours(reading[0]);
  {
    Descriptor its(reading[1]);
    const Child child = shell("exec sleep 100", {.out = its.get()});
  }
  char byte = 0;
  CHECK(read(ours.get(), &byte, 1) == 0);  // nobody holds the other end any more
}

TEST_CASE("child: a program that is not there is named") {
  CHECK_THROWS_WITH_AS(Child({"no-such-program-anywhere"}),
                       "no-such-program-anywhere: No such file or directory", Error);
}

}  // namespace
}  // namespace keel::io
