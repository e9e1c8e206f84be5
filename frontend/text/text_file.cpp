#include "frontend/text/text_file.h"

#include <algorithm>
#include <optional>

#include "frontend/io/packed_file.h"
#include "frontend/text/lines.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

// `at` is the offset of the wrong byte, if there is one.
void check_bytes(std::string_view content, std::optional<std::size_t> at, std::string_view expected,
                 const std::string& file) {
  if (!at) return;
  const std::string_view before = content.substr(0, *at);
  const std::size_t line_start = before.rfind('\n') + 1;  // 0 in the first line
  fail(ErrorKind::kBadInput, "[text] {}: expected {}, got {:02x} at byte {}",
       place(file, std::ranges::count(before, '\n') + 1), expected,
       static_cast<unsigned char>(content[*at]), *at - line_start + 1);
}

void check_lines(std::string_view content, const std::string& file) {
  for (std::int64_t line = 1; !content.empty(); ++line) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    expect_line_bytes(end, file, line);
    expect_marks(content.substr(0, end), file, line);
    content.remove_prefix(std::min(end + 1, content.size()));
  }
}

// The encoding with characters of two or four bytes that the first bytes indicate.
std::string_view wide_encoding(std::string_view text) {
  using namespace std::string_view_literals;
  if (text.starts_with("\xFF\xFE\0\0"sv) || text.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32";
  if (text.starts_with("\xFF\xFE"sv) || text.starts_with("\xFE\xFF"sv)) return "UTF-16";
  if (text.size() < 2 || (text[0] == '\0') == (text[1] == '\0')) return {};
  return text[1] == '\0' ? "UTF-16LE" : "UTF-16BE";
}

}  // namespace

std::string place(std::string_view file, std::int64_t line) {
  return fmt::format("{}: line {}", file, line);
}

void expect_line_bytes(std::size_t bytes, std::string_view file, std::int64_t line) {
  check(bytes <= kMaxLineBytes, ErrorKind::kBadInput,
        "[text] {}: expected a line of at most {} bytes, got a longer one", place(file, line),
        kMaxLineBytes);
}

void expect_marks(std::string_view line, std::string_view file, std::int64_t number) {
  if (number == 1) {
    const std::string_view wide = wide_encoding(line);
    check(wide.empty(), ErrorKind::kBadInput,
          "[text] {}: expected UTF-8, got {}; iconv -f {} -t UTF-8 converts it", file, wide, wide);
    if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  }
  check(!line.starts_with(kByteOrderMark), ErrorKind::kBadInput,
        "[text] {}: expected text, got a byte-order mark (ef bb bf), which stands between files "
        "that were joined; remove it",
        place(file, number));
}

void expect_text(std::string_view content, const std::string& file) {
  expect_marks(content.substr(0, content.find('\n')), file, 1);
  check_bytes(content, first_invalid_utf8(content), "UTF-8", file);
  check_lines(content, file);
}

std::string read_text(const std::filesystem::path& path, std::int64_t max_bytes) {
  std::string content = io::read_file(path, max_bytes);
  expect_text(content, path.string());
  if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
  return content;
}

WesternText read_western_text(const std::filesystem::path& path, std::int64_t max_bytes) {
  std::string content = io::read_file(path, max_bytes);
  check_lines(content, path.string());
  if (!first_invalid_utf8(content)) {
    if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
    return {std::move(content), false};
  }
  check_bytes(content, first_invalid_windows_1252(content), "UTF-8 or Windows-1252", path.string());
  return {utf8_of_windows_1252(content), true};
}

}  // namespace keel::text
