// A folder that only one process at a time works in.
#pragma once

#include <filesystem>
#include <string_view>

#include "frontend/io/child.h"

namespace keel::io {

// Held from construction to destruction, and by the system's doing no longer than the process
// lives, however it ends. The lock is a file `lock` in the folder, which says who holds it, and
// which is there for as long as it is held; one that a killed process left is taken over.
class FolderLock {
 public:
  enum class Holder {
    kProcess,     // this process alone
    kDescendants  // also programs that it starts, until the last of them has ended
  };
  // Makes the folder where there is none. `what` is what this process is to people, such as "keel
  // train". Throws Error{kIo} that names the process when another one holds the lock. On a file
  // system that knows no locks nothing is locked.
  FolderLock(const std::filesystem::path& folder, std::string_view what, Holder holder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

}  // namespace keel::io
