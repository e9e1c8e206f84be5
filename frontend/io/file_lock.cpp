#include "frontend/io/file_lock.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "src/core/error.h"

namespace keel::io {

LockResult try_lock(int descriptor, const std::filesystem::path& path) {
  int result = flock(descriptor, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR) result = flock(descriptor, LOCK_EX | LOCK_NB);
  if (result == 0) return LockResult::kHeld;
  if (errno == EWOULDBLOCK) return LockResult::kTaken;
  const bool has_none = errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP;
  check(has_none, ErrorKind::kIo, "{}: cannot be locked: {}", path.string(), std::strerror(errno));
  return LockResult::kUnsupported;
}

bool is_in_place(int descriptor, const std::filesystem::path& path) {
  struct stat held {
  }, there{};
  return fstat(descriptor, &held) == 0 && stat(path.c_str(), &there) == 0 &&
         held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

}  // namespace keel::io
