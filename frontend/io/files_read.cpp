#include "frontend/io/files_read.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>

namespace keel::io {
namespace {

// Device, number and, for numbers are used again when files are gone, time of birth where the file
// system knows it.
using Identity =
    std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::int64_t, std::uint32_t>;

// Nothing for what is no regular file. An empty path means the descriptor itself.
std::optional<Identity> identity_of(int descriptor, const char* path) {
  struct statx status {};
  if (statx(descriptor, path, AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_BTIME, &status) != 0 ||
      !S_ISREG(status.stx_mode)) {
    return std::nullopt;
  }
  return Identity{status.stx_dev_major, status.stx_dev_minor, status.stx_ino,
                  status.stx_btime.tv_sec, status.stx_btime.tv_nsec};
}

struct FilesRead {
  std::mutex mutex;
  std::set<Identity> files;
};

FilesRead& files_read() {
  static FilesRead all;
  return all;
}

void note(const std::optional<Identity>& file) {
  if (!file) return;
  FilesRead& all = files_read();
  const std::lock_guard guard(all.mutex);
  all.files.insert(*file);
}

}  // namespace

void note_read(int descriptor) { note(identity_of(descriptor, "")); }

void note_read(const std::filesystem::path& path) {
  if (!path.empty()) note(identity_of(AT_FDCWD, path.c_str()));
}

bool was_read(const std::filesystem::path& path) {
  const auto file = path.empty() ? std::nullopt : identity_of(AT_FDCWD, path.c_str());
  FilesRead& all = files_read();
  const std::lock_guard guard(all.mutex);
  return file && all.files.contains(*file);
}

}  // namespace keel::io
