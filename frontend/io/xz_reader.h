// Reads files in the xz format through liblzma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace keel::io {

// Whether a regular file begins with the bytes of the xz format: fd 37 7a 58 5a 00. Also false for
// a file that cannot be read: the code that opens it finds out why.
bool is_xz(const std::filesystem::path& path);

// The content of an xz file from beginning to end. A file may hold several streams with padding
// between them, as the xz tool writes and joins them; their contents follow each other. Errors are
// one line that names the file: Error{kIo} when it is not readable, Error{kMemory} when its
// dictionary needs more than 256 MiB (xz -9 needs 65), and Error{kBadInput} for cut or damaged
// data, for bytes after it, and for a stream without a checksum, where damage would go unnoticed.
class XzReader {
 public:
  explicit XzReader(const std::filesystem::path& path);
  ~XzReader();

  // Fills `out`, less only when the content ends; returns the number of bytes read.
  std::size_t read(std::span<std::byte> out);
  // Goes back to the beginning of the content.
  void rewind();

 private:
  struct Decoder;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void refill();
  [[noreturn]] void fail_with(int code) const;

  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<std::uint8_t> buffer_;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace keel::io
