#include "frontend/text/line_reader.h"

#include <algorithm>
#include <span>

#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 18;

bool is_empty_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) &&
         std::filesystem::file_size(path, ignored) == 0;
}

}  // namespace

LineReader::LineReader(const std::filesystem::path& path, std::int64_t most_bytes)
    : name_(path.string()) {
  ended_ = is_empty_file(path);
  if (ended_) return;
  file_ = std::make_unique<io::PackedFile>(path, most_bytes);
  left_ = file_->size();
}

LineReader::LineReader(std::FILE* stream, std::string name)
    : name_(std::move(name)), stream_(stream) {}

// Puts more bytes after those that are there; false at the end.
bool LineReader::refill() {
  if (ended_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kChunkBytes);
  std::size_t got = 0;
  if (file_) {
    got = static_cast<std::size_t>(std::min<std::int64_t>(left_, kChunkBytes));
    file_->read(std::as_writable_bytes(std::span(buffer_).subspan(before, got)));
    left_ -= static_cast<std::int64_t>(got);
  } else {
    got = std::fread(buffer_.data() + before, 1, kChunkBytes, stream_);
    check(!std::ferror(stream_), ErrorKind::kIo, "{}: cannot be read", name_);
  }
  buffer_.resize(before + got);
  ended_ = got == 0;
  return !ended_;
}

std::optional<Line> LineReader::next() {
  std::size_t from = begin_;
  while (true) {
    const std::size_t end = buffer_.find('\n', from);
    if (end != std::string::npos) return take(end, end + 1);
    const std::size_t seen = buffer_.size() - begin_;
    expect_line_bytes(seen, name_, number_ + 1);
    if (!refill()) break;
    from = begin_ + seen;
  }
  if (begin_ == buffer_.size()) return std::nullopt;
  return take(buffer_.size(), buffer_.size());
}

Line LineReader::take(std::size_t end, std::size_t behind) {
  std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
  begin_ = behind;
  ++number_;
  expect_line_bytes(line.size(), name_, number_);
  expect_marks(line, name_, number_);
  if (number_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  while (line.ends_with('\r')) line.remove_suffix(1);
  if (const std::optional<std::size_t> at = first_invalid_utf8(line)) {
    fail(ErrorKind::kBadInput, "[text] {}: expected UTF-8, got {:02x} at byte {}",
         place(name_, number_), static_cast<unsigned char>(line[*at]), *at + 1);
  }
  return {line, number_};
}

}  // namespace keel::text
