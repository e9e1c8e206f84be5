// A lock that lets only one process at a time work in a folder.
#pragma once

#include <filesystem>
#include <string_view>

#include "frontend/io/child.h"

namespace keel::io {

// Held from construction to destruction; the system releases it when the process ends, however it
// ends. The lock is a file `lock` in the folder. The file names the holder and exists as long as
// the lock is held; one that a killed process left is taken over.
class FolderLock {
 public:
  enum class Holder {
    kProcess,     // only this process
    kDescendants  // also programs that it starts, until the last of them ends
  };
  // Makes the folder if it does not exist. `what` names this process for people, such as "keel
  // train". Throws Error{kIo}, which names the process, when another one holds the lock. On a file
  // system without locks nothing is locked.
  FolderLock(const std::filesystem::path& folder, std::string_view what, Holder holder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

}  // namespace keel::io
