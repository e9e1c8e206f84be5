#include "frontend/io/packed_file.h"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "frontend/io/files_read.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

constexpr unsigned kBufferBytes = 1 << 16;

}  // namespace

void PackedFile::Close::operator()(gzFile_s* file) const { gzclose(file); }

PackedFile::PackedFile(const std::filesystem::path& path, std::int64_t max_bytes)
    : name_(path.string()) {
  std::error_code error;
  const auto disk_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  check(error != std::errc::no_such_file_or_directory, ErrorKind::kIo, "[file] {}: no such file",
        name_);
  check(!error, ErrorKind::kIo, "[file] {}: expected a regular file, got: {}", name_,
        error.message());
  if (is_xz(path)) xz_ = std::make_unique<XzReader>(path);
  const bool plain = !xz_ && open_with_zlib(path);
  note_read(path);
  size_ = plain ? disk_bytes : expanded_size(max_bytes);
  check(size_ > 0, ErrorKind::kBadInput, "[file] {}: expected content, got an empty file", name_);
  check(size_ <= max_bytes, ErrorKind::kBadInput, "[file] {}: expected at most {} bytes, got {}",
        name_, max_bytes, plain ? fmt::format("{}", size_) : "more after expansion");
}

// zlib passes plain files on as they are; true for one of those.
bool PackedFile::open_with_zlib(const std::filesystem::path& path) {
  file_.reset(gzopen(path.c_str(), "rbe"));
  check(file_ != nullptr, ErrorKind::kIo, "[file] {}: expected a readable file, got: {}", name_,
        std::strerror(errno));
  gzbuffer(file_.get(), kBufferBytes);
  const bool plain = gzdirect(file_.get()) == 1;
  check_stream();
  return plain;
}

// Stops a little beyond max_bytes.
std::int64_t PackedFile::expanded_size(std::int64_t max_bytes) {
  std::array<std::byte, kBufferBytes> scratch;
  std::int64_t total = 0;
  for (std::size_t got = 1; got > 0 && total <= max_bytes;) {
    got = read_some(scratch);
    total += static_cast<std::int64_t>(got);
  }
  if (xz_) xz_->rewind();
  if (file_) gzrewind(file_.get());
  return total;
}

// As many bytes as there are, at most out.size().
std::size_t PackedFile::read_some(std::span<std::byte> out) {
  if (xz_) return xz_->read(out);
  const std::size_t got = gzfread(out.data(), 1, out.size(), file_.get());
  check_stream();
  return got;
}

void PackedFile::check_stream() const {
  int code = Z_OK;
  gzerror(file_.get(), &code);
  if (code == Z_OK) return;
  check(code != Z_ERRNO, ErrorKind::kIo, "[file] {}: expected a readable file, got: {}", name_,
        std::strerror(errno));
  check(code != Z_MEM_ERROR, ErrorKind::kMemory, "[file] {}: out of memory", name_);
  fail(ErrorKind::kBadInput, "[file] {}: expected whole gzip data, got {} at byte {}", name_,
       code == Z_BUF_ERROR ? "its end" : "damage", gzoffset(file_.get()));
}

void PackedFile::read(std::span<std::byte> out) {
  const std::size_t got = read_some(out);
  read_ += static_cast<std::int64_t>(got);
  check(got == out.size(), ErrorKind::kBadInput,
        "[file] {}: expected {} more bytes, got {} before its end at {}", name_, out.size(), got,
        read_);
}

std::optional<std::filesystem::path> find_packed(const std::filesystem::path& file) {
  for (const char* packing : {"", ".gz", ".xz"}) {
    const std::filesystem::path path = file.string() + packing;
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

std::filesystem::path require_packed(std::string_view who, const std::filesystem::path& folder,
                                     const std::string& name, const std::string& hint) {
  const std::optional<std::filesystem::path> found = find_packed(folder / name);
  check(found.has_value(), ErrorKind::kIo,
        "[{}] {}: expected {}, {}.gz or {}.xz, got none of them{}", who, folder.string(), name,
        name, name, hint);
  return *found;
}

std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes) {
  PackedFile file(path, max_bytes);
  std::string content(static_cast<std::size_t>(file.size()), '\0');
  file.read(std::as_writable_bytes(std::span(content)));
  return content;
}

}  // namespace keel::io
