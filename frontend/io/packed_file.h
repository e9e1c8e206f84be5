// Files from outside, plain or compressed with gzip or xz, read without trusting them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "frontend/io/xz_reader.h"

struct gzFile_s;  // of zlib

namespace keel::io {

// The content of a regular file, expanded if its first bytes are those of gzip (1f 8b) or of
// xz (fd 37 7a 58 5a 00); its name does not matter. Every error is one line that names the
// file.
class PackedFile {
 public:
  // Opens and measures the file. A packed file is expanded once and the result thrown away,
  // so that damage and bombs are found before a reader allocates anything: this class holds
  // about 250 KiB, and for xz the dictionary that the file asks for. Throws Error{kIo} when
  // the file is missing, not a regular file or not readable, and Error{kBadInput} when it
  // is empty, cut or damaged, or holds more than max_bytes; for xz also the errors of
  // XzReader.
  PackedFile(const std::filesystem::path& path, std::int64_t max_bytes);

  const std::string& name() const { return name_; }
  // Bytes of content, after expansion.
  std::int64_t size() const { return size_; }

  // Reads the next out.size() bytes. Throws Error{kBadInput} when the content ends before, and
  // otherwise as the constructor.
  void read(std::span<std::byte> out);

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  bool open_with_zlib(const std::filesystem::path& path);
  std::int64_t expanded_size(std::int64_t max_bytes);
  std::size_t read_some(std::span<std::byte> out);
  void check_stream() const;

  std::string name_;
  std::unique_ptr<XzReader> xz_;           // for a file in the xz format
  std::unique_ptr<gzFile_s, Close> file_;  // for any other file
  std::int64_t size_ = 0, read_ = 0;
};

// `file`, or else FILE.gz, or else FILE.xz, whichever exists.
std::optional<std::filesystem::path> find_packed(const std::filesystem::path& file);
// The same for a file that has to exist. Throws Error{kIo}, "[WHO] FOLDER: expected NAME, NAME.gz
// or NAME.xz, got none of them" and `hint`.
std::filesystem::path require_packed(std::string_view who, const std::filesystem::path& folder,
                                     const std::string& name, const std::string& hint = "");

// The whole content. Throws as PackedFile.
std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes);

}  // namespace keel::io
