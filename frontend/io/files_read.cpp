#include "frontend/io/files_read.h"

#include <sys/stat.h>

#include <mutex>
#include <set>
#include <utility>

namespace keel::io {
namespace {

using Identity = std::pair<dev_t, ino_t>;

struct FilesRead {
  std::mutex mutex;
  std::set<Identity> files;
};

FilesRead& files_read() {
  static FilesRead all;
  return all;
}

void note(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return;
  FilesRead& all = files_read();
  const std::lock_guard guard(all.mutex);
  all.files.emplace(status.st_dev, status.st_ino);
}

}  // namespace

void note_read(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) == 0) note(status);
}

void note_read(const std::filesystem::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) note(status);
}

bool was_read(const std::filesystem::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  FilesRead& all = files_read();
  const std::lock_guard guard(all.mutex);
  return all.files.contains({status.st_dev, status.st_ino});
}

}  // namespace keel::io
