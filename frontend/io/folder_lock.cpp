#include "frontend/io/folder_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "frontend/io/file_lock.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

namespace fs = std::filesystem;

Descriptor open_lock(const fs::path& path, FolderLock::Holder holder) {
  constexpr mode_t kMode = 0644;
  const int inherited = holder == FolderLock::Holder::kProcess ? O_CLOEXEC : 0;
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | inherited, kMode));
  check(file.get() >= 0, ErrorKind::kIo, "{}: {}", path.string(), std::strerror(errno));
  return file;
}

// The text that the holder of a lock wrote into it, or nothing readable.
std::string holder_of(const Descriptor& file) {
  std::array<char, 80> text;
  const ssize_t size = pread(file.get(), text.data(), text.size(), 0);
  const std::string said(text.data(), std::size_t(std::max<ssize_t>(size, 0)));
  const std::string line = said.substr(0, said.find('\n'));
  return line.starts_with("process ") ? line : "another process";
}

// Whether the lock is held from now on.
bool lock(const Descriptor& file, const fs::path& folder) {
  const LockResult result = try_lock(file.get(), folder);
  check(result != LockResult::kTaken, ErrorKind::kIo,
        "{}: {} works in this folder; wait until it has ended, or give another one",
        folder.string(), holder_of(file));
  return result == LockResult::kHeld;
}

// For messages only: if it cannot be written, the lock still holds.
void sign(const Descriptor& file, std::string_view what, FolderLock::Holder holder) {
  const bool alone = holder == FolderLock::Holder::kProcess;
  const std::string text = fmt::format("process {} ({}){}\n", getpid(), what,
                                       alone ? "" : ", or a program that it started,");
  if (ftruncate(file.get(), 0) != 0) return;
  [[maybe_unused]] const ssize_t written = pwrite(file.get(), text.data(), text.size(), 0);
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder, std::string_view what, Holder holder)
    : path_(folder / "lock") {
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, ErrorKind::kIo, "{}: cannot make this folder: {}", folder.string(),
        error.message());
  while (true) {
    file_ = open_lock(path_, holder);
    // The previous holder may have removed the file after it was opened here.
    if (!lock(file_, folder) || is_in_place(file_.get(), path_)) break;
  }
  sign(file_, what, holder);
}

FolderLock::~FolderLock() { unlink(path_.c_str()); }

}  // namespace keel::io
