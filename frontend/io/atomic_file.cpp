// Writing, syncing and renaming over POSIX calls.
#include "frontend/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "frontend/io/file_lock.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTempSuffix = ".keel-tmp";

template <class Call>
auto repeat_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

[[noreturn]] void fail_errno(const fs::path& path, std::string_view call) {
  const int error = errno;
  const std::string reason = std::generic_category().message(error);
  fail(ErrorKind::kIo, "[file] {}: {}: {}{}", path.string(), call,
       error == ENOSPC ? "disk full: " : "", reason);
}

fs::path directory_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// The target of the path when it is a link, even if the target does not exist yet.
fs::path behind_links(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  fs::path end = path;
  for (int i = 0; i <= kMostLinks; ++i) {
    std::error_code error;
    const fs::path next = fs::read_symlink(end, error);
    if (error) return end;  // no link; what else is wrong shows when the file is opened
    end = directory_of(end) / next;
  }
  errno = ELOOP;
  fail_errno(path, "link");
}

fs::path writable_target(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check(!fs::exists(status) || fs::is_regular_file(status), ErrorKind::kIo,
        "[file] {}: expected a regular file or none to write, got another kind", path.string());
  return behind_links(path);
}

// ".<target>.<pid>-<number>.keel-tmp" in the target's directory, so that rename never crosses file
// systems. A process on another machine may have the same number.
fs::path vacant_temp(const fs::path& target) {
  static std::atomic<std::uint64_t> next = 0;
  while (true) {
    const fs::path temp =
        directory_of(target) /
        fmt::format(".{}.{}-{}{}", target.filename().string(), ::getpid(), next++, kTempSuffix);
    std::error_code error;
    if (!fs::exists(fs::symlink_status(temp, error))) return temp;
  }
}

// Removes a temporary file unless its writer lives, which holds its lock. Where there are no locks
// nobody knows, and it stays.
void remove_if_stale(const fs::path& temp) {
  const Descriptor file(::open(temp.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (file.get() < 0) return;
  try {
    if (try_lock(file.get(), temp) != LockResult::kHeld) return;
  } catch (const Error&) {
    return;
  }
  if (is_in_place(file.get(), temp)) file_calls().unlink(temp.c_str());
}

// The target that a temporary name stands for; empty when the name is not of our making.
std::string_view target_of(std::string_view name) {
  if (name.size() <= kTempSuffix.size() + 1 || name.front() != '.' ||
      !name.ends_with(kTempSuffix)) {
    return {};
  }
  name = name.substr(1, name.size() - 1 - kTempSuffix.size());
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == name.size()) return {};
  const bool number = name.find_first_not_of("0123456789-", dot + 1) == std::string_view::npos;
  return number ? name.substr(0, dot) : std::string_view{};
}

}  // namespace

FileCalls& file_calls() {
  static FileCalls calls{
      [](const char* p, int flags, mode_t mode) { return ::open(p, flags, mode); },
      ::write,
      ::fsync,
      ::close,
      std::rename,
      ::unlink};
  return calls;
}

FileHandle::FileHandle(fs::path path, int flags, fs::path shown)
    : shown_(shown.empty() ? path : std::move(shown)) {
  fd_ =
      repeat_interrupted([&] { return file_calls().open(path.c_str(), flags | O_CLOEXEC, 0666); });
  if (fd_ < 0) fail_call("open");
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) file_calls().close(fd_);
}

void FileHandle::fail_call(std::string_view call) const { fail_errno(shown_, call); }

void FileHandle::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        repeat_interrupted([&] { return file_calls().write(fd_, bytes.data(), bytes.size()); });
    if (written == 0) errno = EIO;  // no progress and no reason given; repeating could hang
    if (written <= 0) fail_call("write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void FileHandle::sync() {
  const int result = repeat_interrupted([&] { return file_calls().fsync(fd_); });
  // EINVAL: this kind of file, or a directory on this file system, has no fsync to wait for.
  if (result != 0 && errno != EINVAL) fail_call("fsync");
}

void FileHandle::close() {
  // Linux closes the descriptor even when it reports an error, so a second close would be wrong.
  const int fd = std::exchange(fd_, -1);
  if (file_calls().close(fd) != 0 && errno != EINTR) fail_call("close");
}

AtomicFile::AtomicFile(const fs::path& target) : target_(writable_target(target)) {
  remove_stale_temps(directory_of(target_), target_.filename().string());
  do {
    temp_ = vacant_temp(target_);
    file_.emplace(temp_, O_WRONLY | O_CREAT | O_EXCL, target_);
  } while (!hold());
}

// Locks the temporary file; the copy of its descriptor keeps the lock beyond close(). False if
// another process took the file for a dead one's in the moment before.
bool AtomicFile::hold() {
  lock_ = Descriptor(::fcntl(file_->descriptor(), F_DUPFD_CLOEXEC, 0));
  if (lock_.get() < 0) fail_errno(target_, "open");
  const LockResult result = try_lock(lock_.get(), target_);
  return result == LockResult::kUnsupported ||
         (result == LockResult::kHeld && is_in_place(lock_.get(), temp_));
}

AtomicFile::~AtomicFile() {
  if (!renamed_) file_calls().unlink(temp_.c_str());
}

void AtomicFile::commit() {
  file_->sync();
  file_->close();
  // Opened before the rename, so that as little as possible can fail after it.
  FileHandle directory(directory_of(target_), O_RDONLY | O_DIRECTORY);
  if (repeat_interrupted([&] { return file_calls().rename(temp_.c_str(), target_.c_str()); }) !=
      0) {
    fail_errno(target_, "rename");
  }
  renamed_ = true;
  directory.sync();
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void remove_stale_temps(const fs::path& directory, std::string_view target) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::string_view found = target_of(name);
    if (!found.empty() && (target.empty() || found == target)) remove_if_stale(it->path());
  }
}

}  // namespace keel::io
