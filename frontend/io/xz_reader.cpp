#include "frontend/io/xz_reader.h"

#include <lzma.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "src/core/error.h"

namespace keel::io {
namespace {

constexpr std::array<std::uint8_t, 6> kXzMagic = {0xFD, '7', 'z', 'X', 'Z', 0};
constexpr std::size_t kXzBufferBytes = 1 << 16;
constexpr std::uint64_t kMaxMemory = 256 << 20;
// Without these flags a stream whose checksum is absent or unknown would pass unchecked.
constexpr std::uint32_t kFlags =
    LZMA_CONCATENATED | LZMA_TELL_NO_CHECK | LZMA_TELL_UNSUPPORTED_CHECK;

}  // namespace

bool is_xz(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  std::array<std::uint8_t, kXzMagic.size()> first{};
  return file && std::fread(first.data(), 1, first.size(), file.get()) == first.size() &&
         first == kXzMagic;
}

struct XzReader::Decoder {
  lzma_stream stream = LZMA_STREAM_INIT;
  bool file_ended = false, ended = false;
  std::int64_t read = 0;  // bytes of the file

  ~Decoder() { lzma_end(&stream); }
};

XzReader::XzReader(const std::filesystem::path& path)
    : name_(path.string()), file_(std::fopen(path.c_str(), "rbe")), buffer_(kXzBufferBytes) {
  check(file_ != nullptr, ErrorKind::kIo, "[file] {}: expected a readable file, got: {}", name_,
        std::strerror(errno));
  rewind();
}

XzReader::~XzReader() = default;

void XzReader::rewind() {
  std::rewind(file_.get());
  decoder_ = std::make_unique<Decoder>();
  const lzma_ret code = lzma_stream_decoder(&decoder_->stream, kMaxMemory, kFlags);
  if (code != LZMA_OK) fail_with(code);
}

std::size_t XzReader::read(std::span<std::byte> out) {
  lzma_stream& stream = decoder_->stream;
  stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  stream.avail_out = out.size();
  while (stream.avail_out > 0 && !decoder_->ended) {
    if (stream.avail_in == 0 && !decoder_->file_ended) refill();
    const lzma_ret code = lzma_code(&stream, decoder_->file_ended ? LZMA_FINISH : LZMA_RUN);
    if (code != LZMA_OK && code != LZMA_STREAM_END) fail_with(code);
    decoder_->ended = code == LZMA_STREAM_END;
  }
  return out.size() - stream.avail_out;
}

void XzReader::refill() {
  const std::size_t got = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
  check(!std::ferror(file_.get()), ErrorKind::kIo, "[file] {}: expected a readable file, got: {}",
        name_, std::strerror(errno));
  decoder_->file_ended = got < buffer_.size();
  decoder_->stream.next_in = buffer_.data();
  decoder_->stream.avail_in = got;
  decoder_->read += static_cast<std::int64_t>(got);
}

void XzReader::fail_with(int code) const {
  const auto at = decoder_->read - static_cast<std::int64_t>(decoder_->stream.avail_in);
  check(code != LZMA_MEM_ERROR, ErrorKind::kMemory, "[file] {}: out of memory", name_);
  check(code != LZMA_MEMLIMIT_ERROR, ErrorKind::kMemory,
        "[file] {}: expected xz data that need at most {} bytes to expand, got more", name_,
        kMaxMemory);
  check(code != LZMA_NO_CHECK && code != LZMA_UNSUPPORTED_CHECK, ErrorKind::kBadInput,
        "[file] {}: expected xz data with a known checksum, got another or none", name_);
  fail(ErrorKind::kBadInput, "[file] {}: expected whole xz data, got {} at byte {}", name_,
       code == LZMA_BUF_ERROR ? "its end" : "damage", at);
}

}  // namespace keel::io
