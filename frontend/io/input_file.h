// A file opened for reading: its size is known, and every failure is an Error.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace keel::io {

class InputFile {
 public:
  // Throws Error{kIo} when the system refuses, Error{kBadInput} for anything but a regular file.
  explicit InputFile(const std::filesystem::path& path);

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }  // bytes, when it was opened

  // Reads `size` bytes at `offset`. Throws Error{kIo}, or Error{kBadInput} if there are fewer.
  void read(std::int64_t offset, void* bytes, std::int64_t size);
  std::string read_all();

 private:
  [[noreturn]] void fail_call(std::string_view call) const;

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::int64_t size_ = 0;
};

}  // namespace keel::io
