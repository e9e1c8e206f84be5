// Text files from outside, checked before anybody looks into them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace keel::text {

// "FILE: line 12", the place that messages name.
std::string place(std::string_view file, std::int64_t line);

// Throws Error{kBadInput} that names the file, the line and the byte that is wrong, unless the
// content is UTF-8.
void expect_utf8(std::string_view content, const std::string& file);

// The content of a plain or packed file of UTF-8, without the byte-order mark that some begin with.
// Throws as io::PackedFile, and Error{kBadInput} that names the line and the byte that is wrong.
std::string read_text(const std::filesystem::path& path, std::int64_t max_bytes);

// The same for a file of which nobody said whether it is UTF-8 or Windows-1252. It is UTF-8 if it
// can be, for text in Windows-1252 practically never is by chance, and otherwise Windows-1252.
struct WesternText {
  std::string utf8;
  bool was_windows_1252 = false;
};
WesternText read_western_text(const std::filesystem::path& path, std::int64_t max_bytes);

}  // namespace keel::text
