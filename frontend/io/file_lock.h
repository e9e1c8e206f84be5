// Locks on open files, which the system releases when the process ends, however it ends.
#pragma once

#include <filesystem>

namespace keel::io {

enum class LockResult {
  kHeld,
  kTaken,       // somebody else holds it
  kUnsupported  // this file system has no locks
};

// Tries to lock an open file. The lock belongs to what open() made: to copies of the descriptor as
// well, and not to another open() of the same file, be it in the same process. Throws Error{kIo},
// which names `path`, if the system refuses.
LockResult try_lock(int descriptor, const std::filesystem::path& path);

// Whether the path still leads to the open file, which somebody may have removed or replaced.
bool is_in_place(int descriptor, const std::filesystem::path& path);

}  // namespace keel::io
