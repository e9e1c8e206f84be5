// Text files from outside, checked before they are used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace keel::text {

// "FILE: line 12", the place that messages name.
std::string place(std::string_view file, std::int64_t line);

// Throws Error{kBadInput}, which names the file and the line, for a line of more bytes than
// kMaxLineBytes.
void expect_line_bytes(std::size_t bytes, std::string_view file, std::int64_t line);

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Throws Error{kBadInput}, which names the cause, for a first line that is in UTF-16 or UTF-32, and
// for a byte-order mark at the front of any line but at the front of the file.
void expect_marks(std::string_view line, std::string_view file, std::int64_t number);

// Throws Error{kBadInput}, which names the file and the line, unless the content is UTF-8 in lines
// of at most kMaxLineBytes, and as expect_marks.
void expect_text(std::string_view content, const std::string& file);

// The content of a plain or packed file of UTF-8, without a byte-order mark at its front. Throws as
// io::PackedFile and expect_text.
std::string read_text(const std::filesystem::path& path, std::int64_t max_bytes);

// The same for a file that may be UTF-8 or Windows-1252. It is taken as UTF-8 if it is valid UTF-8,
// since text in Windows-1252 practically never is by chance, and otherwise as Windows-1252. Its
// lines have the same limit.
struct WesternText {
  std::string utf8;
  bool was_windows_1252 = false;
};
WesternText read_western_text(const std::filesystem::path& path, std::int64_t max_bytes);

}  // namespace keel::text
