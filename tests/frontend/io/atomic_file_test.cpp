// Files appear whole or not at all, whichever system call fails.
#include "frontend/io/atomic_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "src/core/error.h"
#include "tests/support/fault.h"
#include "tests/support/temp_dir.h"

using namespace keel;
using namespace keel::io;
using test::Fault;
using test::FaultGuard;
using test::read_bytes;
using test::TempDir;
using test::write_bytes;

namespace {

constexpr std::string_view kOld = "the old content", kNew = "the new content, which is longer";

std::size_t files_in(const std::filesystem::path& directory) {
  return std::size_t(std::distance(std::filesystem::directory_iterator(directory), {}));
}

// The message of the Error{kIo} that writing under a fault ends in; empty when it succeeds.
std::string write_under(const Fault& fault, const std::filesystem::path& path) {
  FaultGuard guard(fault);
  try {
    write_file_atomically(path, kNew);
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kIo);
    return error.what();
  }
}

int calls_of_one_write(const std::filesystem::path& path) {
  FaultGuard guard({});
  write_file_atomically(path, kNew);
  return guard.calls();
}

}  // namespace

TEST_CASE("atomic_file: writes and replaces whole files") {
  TempDir dir;
  write_file_atomically(dir / "a", kOld);
  CHECK(read_bytes(dir / "a") == kOld);
  write_file_atomically(dir / "a", kNew);
  CHECK(read_bytes(dir / "a") == kNew);
  write_file_atomically(dir / "a", "");
  CHECK(read_bytes(dir / "a").empty());
  CHECK(files_in(dir.path()) == 1);
}

TEST_CASE("atomic_file: without commit nothing appears") {
  TempDir dir;
  write_bytes(dir / "a", kOld);
  {
    AtomicFile file(dir / "a");
    file.write(kNew);
    CHECK(files_in(dir.path()) == 2);
  }
  CHECK(read_bytes(dir / "a") == kOld);
  CHECK(files_in(dir.path()) == 1);
}

TEST_CASE("atomic_file: every system call failing leaves the old file or the new one, no other") {
  TempDir dir;
  const int calls = calls_of_one_write(dir / "a");
  REQUIRE(calls == 8);  // open, write, fsync, close, open directory, rename, fsync, close
  for (int error : {EIO, ENOSPC, EACCES}) {
    for (bool lasting : {false, true}) {
      for (int at = 0; at < calls; ++at) {
        CAPTURE(at);
        CAPTURE(error);
        write_bytes(dir / "a", kOld);
        const std::string message =
            write_under({.at = at, .error = error, .lasting = lasting}, dir / "a");
        // Only closing the directory, at the very end, may fail unnoticed.
        CHECK(message.empty() == (at == calls - 1));
        const bool renamed = at > 5;
        CHECK(read_bytes(dir / "a") == (renamed ? kNew : kOld));
        CHECK(files_in(dir.path()) == 1);
      }
    }
  }
}

TEST_CASE("atomic_file: a full disk is named, with the path") {
  TempDir dir;
  const std::string message = write_under({.at = 1, .error = ENOSPC}, dir / "a");
  CHECK(message ==
        fmt::format("[file] {}: write: disk full: No space left on device", (dir / "a").string()));
  CHECK(write_under({.at = 5, .error = EACCES}, dir / "a").ends_with("rename: Permission denied"));
}

TEST_CASE("atomic_file: a real full device") {
  FileHandle full("/dev/full", O_WRONLY);
  CHECK_THROWS_WITH_AS(full.write("x"),
                       "[file] /dev/full: write: disk full: No space left on device", Error);
}

TEST_CASE("atomic_file: what is no regular file is neither replaced nor removed") {
  TempDir dir;
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_directory(dir / "folder");
  std::filesystem::create_symlink("pipe", dir / "link");
  for (const char* name : {"pipe", "folder", "link"}) {
    CHECK(write_under({}, dir / name) ==
          fmt::format("[file] {}: expected a regular file or none to write, got another kind",
                      (dir / name).string()));
  }
  CHECK(std::filesystem::is_fifo(dir / "pipe"));
  CHECK(std::filesystem::is_symlink(dir / "link"));
  CHECK(files_in(dir.path()) == 3);
}

TEST_CASE("atomic_file: what a link leads to is written, there or not yet, and the link stays") {
  namespace fs = std::filesystem;
  TempDir dir;
  for (const char* name : {"near", "far"}) fs::create_directory(dir / name);
  fs::create_symlink("../far/middle", dir / "near/link");  // relative to the link's own folder
  fs::create_symlink(dir / "far/file", dir / "far/middle");
  for (const std::string_view content : {kOld, kNew}) {
    write_file_atomically(dir / "near/link", content);
    CHECK(fs::is_symlink(dir / "near/link"));
    CHECK(fs::is_symlink(dir / "far/middle"));
    CHECK(fs::is_regular_file(fs::symlink_status(dir / "far/file")));
    CHECK(read_bytes(dir / "far/file") == content);
  }
  AtomicFile file(dir / "near/link");
  CHECK(files_in(dir / "near") == 1);
  CHECK(files_in(dir / "far") == 3);  // the temporary file is beside the target
}

TEST_CASE("atomic_file: links that lead nowhere") {
  TempDir dir;
  std::filesystem::create_symlink("b", dir / "a");
  std::filesystem::create_symlink("a", dir / "b");
  std::filesystem::create_symlink("no/file", dir / "c");
  CHECK(write_under({}, dir / "a") ==
        fmt::format("[file] {}: link: Too many levels of symbolic links", (dir / "a").string()));
  CHECK(write_under({}, dir / "c") ==
        fmt::format("[file] {}: open: No such file or directory", (dir / "no/file").string()));
  CHECK(files_in(dir.path()) == 3);
}

TEST_CASE("atomic_file: short writes are continued, interrupted calls repeated") {
  TempDir dir;
  CHECK(write_under({.chunk = 1}, dir / "a") == "");
  CHECK(read_bytes(dir / "a") == kNew);
  for (int at = 0; at < 7; ++at) {
    CAPTURE(at);
    write_bytes(dir / "a", kOld);
    CHECK(write_under({.at = at, .error = EINTR, .chunk = 30}, dir / "a") == "");
    CHECK(read_bytes(dir / "a") == kNew);
  }
}

TEST_CASE("atomic_file: a write that never gets on is an error, not a hang") {
  TempDir dir;
  CHECK(write_under({.chunk = 0}, dir / "a").ends_with("write: Input/output error"));
  CHECK(files_in(dir.path()) == 0);
}

TEST_CASE("atomic_file: a directory that cannot be synced does not stop the save") {
  TempDir dir;
  CHECK(write_under({.at = 6, .error = EINVAL}, dir / "a") == "");
  CHECK(read_bytes(dir / "a") == kNew);
}

TEST_CASE("atomic_file: a process killed in any system call leaves the old file or the new one") {
  TempDir dir;
  const int calls = calls_of_one_write(dir / "a");
  for (int at = 0; at < calls; ++at) {
    CAPTURE(at);
    write_bytes(dir / "a", kOld);
    const pid_t child = ::fork();
    if (child == 0) {
      FaultGuard guard({.at = at, .crash = true});
      write_file_atomically(dir / "a", kNew);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WEXITSTATUS(status) == 9);
    CHECK(read_bytes(dir / "a") == (at > 5 ? kNew : kOld));
    // The next attempt cleans up the leftovers of the dead process.
    CHECK(files_in(dir.path()) == (at >= 1 && at <= 5 ? 2u : 1u));
    write_file_atomically(dir / "a", kNew);
    CHECK(files_in(dir.path()) == 1);
  }
}

TEST_CASE("atomic_file: two writers of one file put whole files in place, the last one stays") {
  TempDir dir;
  AtomicFile one(dir / "a");
  one.write(kOld);
  AtomicFile two(dir / "a");
  remove_stale_temps(dir.path());
  two.write(kNew);
  two.commit();
  CHECK(read_bytes(dir / "a") == kNew);
  remove_stale_temps(dir.path());
  one.commit();
  CHECK(read_bytes(dir / "a") == kOld);
}

// Each writes the file again and again, and cleans up after the others while they live.
TEST_CASE("atomic_file: twenty processes write one file at the same time") {
  TempDir dir;
  constexpr int kProcesses = 20, kFiles = 40;
  const std::string content(5000, 'x');
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      int failed = 0;
      for (int file = 0; file < kFiles; ++file) {
        try {
          write_file_atomically(dir / "a", content);
        } catch (const Error&) {
          failed = 1;
        }
      }
      ::_exit(failed);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(read_bytes(dir / "a") == content);
  CHECK(files_in(dir.path()) == 1);
}

TEST_CASE("atomic_file: only names of our own making are cleaned") {
  TempDir dir;
  for (const char* name : {".a.12-0.keel-tmp", ".a.b.7.keel-tmp"}) {
    write_bytes(dir / name, "stale");
  }
  const std::initializer_list<const char*> others = {"a",
                                                     ".a.keel-tmp",
                                                     ".a.x1.keel-tmp",
                                                     "a.12.keel-tmp",
                                                     ".keel-tmp",
                                                     ".a..keel-tmp",
                                                     ".12.keel-tmp",
                                                     ".a.12.keel-tmp.x",
                                                     ".a.12.keel-tmp.bak",
                                                     "..keel-tmp"};
  for (const char* name : others) write_bytes(dir / name, "mine");
  remove_stale_temps(dir.path(), "a.b");
  CHECK(files_in(dir.path()) == others.size() + 1);
  remove_stale_temps(dir.path());
  CHECK(files_in(dir.path()) == others.size());
  for (const char* name : others) CHECK(read_bytes(dir / name) == "mine");
  remove_stale_temps(dir / "no such directory");
}

TEST_CASE("atomic_file: errors name the path") {
  TempDir dir;
  const std::string missing = (dir / "no/file").string();
  CHECK_THROWS_WITH_AS(write_file_atomically(missing, "x"),
                       ("[file] " + missing + ": open: No such file or directory").c_str(), Error);
}
