// Files that appear whole or not at all, and files that grow by whole records. Every system call
// that writes goes through one replaceable table, so that tests can make each of them fail.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>

#include "frontend/io/child.h"

namespace keel::io {

// The system calls in use, with the meaning of their namesakes in POSIX.
struct FileCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*write)(int fd, const void* bytes, std::size_t size);
  int (*fsync)(int fd);
  int (*close)(int fd);
  int (*rename)(const char* from, const char* to);
  int (*unlink)(const char* path);
};

// The one table. It starts with the operating system's own calls; only tests change it.
FileCalls& file_calls();

// An open file. Interrupted calls are repeated and short writes continued; everything else that
// fails throws Error{kIo} naming the path and the system's reason.
class FileHandle {
 public:
  // `flags` as for open(2). Messages name `shown`, if it is given, in place of `path`.
  FileHandle(std::filesystem::path path, int flags, std::filesystem::path shown = {});
  ~FileHandle();
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;

  int descriptor() const { return fd_; }
  void write(std::string_view bytes);
  // Returns when the content is on the disk.
  void sync();
  // Closes the file, and throws the error that the destructor would swallow.
  void close();

 private:
  [[noreturn]] void fail_call(std::string_view call) const;

  std::filesystem::path shown_;
  int fd_ = -1;
};

// A file under construction. It grows beside its target under a temporary name, and commit() puts
// it in place. Destroyed without commit(), it leaves no trace, and the target is unchanged. Several
// writers, in any processes, may have one target: each puts a whole file in place, and the last one
// stays. A symbolic link stays: the file that it leads to is the target, whether it exists or not.
class AtomicFile {
 public:
  // Throws Error{kIo} for a target that is not a regular file, because the rename would replace a
  // device or pipe, and for links that form a loop. Also removes the remains that a killed process
  // left of an earlier attempt at the same target.
  explicit AtomicFile(const std::filesystem::path& target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes) { file_->write(bytes); }
  // Content to disk, rename over the target, directory to disk. If only the last of these fails,
  // the target already is the whole new file, but may not survive a loss of power.
  void commit();

 private:
  bool hold();

  std::filesystem::path target_, temp_;
  std::optional<FileHandle> file_;
  Descriptor lock_;
  bool renamed_ = false;
};

// Writes a whole file through AtomicFile.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// Removes temporary files that AtomicFile left in `directory`, for one target name or, if that is
// empty, for all, unless the process that writes them lives. Never touches files with other names.
// Skips files that it cannot remove.
void remove_stale_temps(const std::filesystem::path& directory, std::string_view target = {});

}  // namespace keel::io
