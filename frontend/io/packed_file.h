// Files from outside, plain or gzip, read without trusting them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

struct gzFile_s;  // of zlib

namespace keel::io {

// The content of a regular file, expanded when its first two bytes are those of gzip (1f 8b).
// Every error is one line that names the file.
class PackedFile {
 public:
  // Opens and measures the file. A gzip file is expanded once and thrown away, so that damage and
  // bombs are found before a reader allocates anything: this class holds about 250 KiB.
  // Throws Error{kIo} when the file is missing, not a regular file or not readable, and
  // Error{kBadInput} when it is empty, cut or damaged gzip, or holds more than max_bytes.
  PackedFile(const std::filesystem::path& path, std::int64_t max_bytes);

  const std::string& name() const { return name_; }
  // Bytes of content, after expansion.
  std::int64_t size() const { return size_; }

  // The next out.size() bytes. Throws Error{kBadInput} when the content ends before, and otherwise
  // as the constructor.
  void read(std::span<std::byte> out);

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  std::int64_t expanded_size(std::int64_t max_bytes);
  void check_stream() const;

  std::string name_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::int64_t size_ = 0;
};

// The whole content. Throws as PackedFile.
std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes);

}  // namespace keel::io
