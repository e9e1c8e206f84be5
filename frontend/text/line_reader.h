// Reads the lines of a text larger than memory: a file, plain or packed, or standard input.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/io/packed_file.h"
#include "frontend/text/lines.h"

namespace keel::text {

// Cuts lines as text::Lines does, and checks each to be UTF-8 and of at most kMaxLineBytes. Skips a
// byte-order mark at the front. Throws Error{kBadInput} that names file, line and what was
// expected, Error{kIo} when reading fails, and for a file the errors of io::PackedFile, except that
// an empty file is allowed and has no lines.
class LineReader {
 public:
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

  // A file of at most `most_bytes`, expanded.
  explicit LineReader(const std::filesystem::path& path, std::int64_t most_bytes = kMostBytes);
  // Reads from a stream that stays open, such as stdin; `name` is for messages.
  LineReader(std::FILE* stream, std::string name);

  const std::string& name() const { return name_; }
  // The next line, valid until the next call, or nothing.
  std::optional<Line> next();

 private:
  bool refill();
  Line take(std::size_t end, std::size_t behind);

  std::string name_, buffer_;
  std::size_t begin_ = 0;  // of the bytes that are not given yet
  std::int64_t number_ = 0, left_ = 0;
  std::unique_ptr<io::PackedFile> file_;
  std::FILE* stream_ = nullptr;
  bool ended_ = false;
};

}  // namespace keel::text
