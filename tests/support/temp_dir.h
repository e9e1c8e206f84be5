// A directory of its own for one test, removed with everything in it when the test ends.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace keel::test {

class TempDir {
 public:
  // Makes an empty directory under the system's place for temporary files.
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// The whole content of a file, byte for byte; throws Error{kIo} when it cannot be read.
std::string read_bytes(const std::filesystem::path& path);

// Replaces a file by the given bytes, in the plainest way; throws Error{kIo}.
void write_bytes(const std::filesystem::path& path, std::string_view bytes);

}  // namespace keel::test
