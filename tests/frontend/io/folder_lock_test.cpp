// Locks of folders: who holds one, for how long, and what others are told.
#include "frontend/io/folder_lock.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <memory>

#include "src/core/error.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"

namespace keel::io {
namespace {

namespace fs = std::filesystem;
using Holder = FolderLock::Holder;

TEST_CASE("folder lock: one process at a time, the message names it, and no file is left") {
  const test::TempDir temp;
  const fs::path folder = temp / "made/on the way";
  {
    const FolderLock lock(folder, "a test", Holder::kProcess);
    const std::string who =
        fmt::format("{}: process {} (a test) works in this folder", folder.string(), getpid());
    test::check_refused([&] { FolderLock(folder, "another", Holder::kProcess); }, who, "",
                        ErrorKind::kIo);
    const FolderLock other(temp / "elsewhere", "a test", Holder::kProcess);
  }
  CHECK(fs::is_empty(folder));
  const FolderLock again(folder, "a test", Holder::kProcess);
}

TEST_CASE("folder lock: what is in the lock's file is not believed") {
  const test::TempDir temp;
  for (const std::string& text : {std::string(), std::string(500, 'x'), std::string("\x1b[2J\n")}) {
    test::write_bytes(temp / "lock", text);
    const FolderLock lock(temp.path(), "a test", Holder::kProcess);
    test::write_bytes(temp / "lock", text);
    test::check_refused([&] { FolderLock(temp.path(), "another", Holder::kProcess); },
                        temp.path().string() + ": another process works in this folder", "",
                        ErrorKind::kIo);
  }
}

TEST_CASE("folder lock: a program that was started holds it on, if it is to") {
  const test::TempDir temp;
  for (const Holder holder : {Holder::kProcess, Holder::kDescendants}) {
    auto lock = std::make_unique<FolderLock>(temp.path(), "a test", holder);
    // The file is left in place, as by a process that is killed.
    fs::create_hard_link(temp / "lock", temp / "kept");
    auto child = std::make_unique<Child>(std::vector<std::string>{"sleep", "100"});
    lock.reset();
    fs::rename(temp / "kept", temp / "lock");
    if (holder == Holder::kProcess) {
      const FolderLock next(temp.path(), "a test", holder);
    } else {
      test::check_refused([&] { FolderLock(temp.path(), "a test", holder); },
                          temp.path().string() + ": process ", "or a program that it started",
                          ErrorKind::kIo);
      child.reset();
      const FolderLock next(temp.path(), "a test", holder);
    }
  }
}

TEST_CASE("folder lock: a folder that cannot be is an error") {
  const test::TempDir temp;
  test::write_bytes(temp / "file", "content");
  test::check_refused([&] { FolderLock(temp / "file/folder", "a test", Holder::kProcess); }, "",
                      "cannot make this folder", ErrorKind::kIo);
}

}  // namespace
}  // namespace keel::io
