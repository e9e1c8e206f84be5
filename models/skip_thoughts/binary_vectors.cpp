#include "models/skip_thoughts/binary_vectors.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "frontend/io/packed_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::int64_t kMostVectors = 1LL << 32, kWidest = 65536;
constexpr std::size_t kMostBytes = 65536;  // of a word

// The bytes of a file one by one.
class ByteReader {
 public:
  explicit ByteReader(const std::filesystem::path& path)
      : file_(path, std::numeric_limits<std::int64_t>::max()), left_(file_.size()) {}

  const std::string& name() const { return file_.name(); }
  std::int64_t left() const { return left_ + std::ssize(buffer_) - at_; }
  char peek() {
    if (at_ == std::ssize(buffer_)) fill();
    return static_cast<char>(buffer_[static_cast<std::size_t>(at_)]);
  }
  char take() {
    const char byte = peek();
    ++at_;
    return byte;
  }
  void take(std::span<std::byte> out) {
    for (std::byte& byte : out) byte = static_cast<std::byte>(take());
  }

 private:
  void fill() {
    constexpr std::int64_t kBuffer = 1 << 16;
    buffer_.resize(static_cast<std::size_t>(std::min(left_, kBuffer)));
    check(!buffer_.empty(), ErrorKind::kBadInput, "[vectors] {}: it ends early", name());
    file_.read(buffer_);
    left_ -= std::ssize(buffer_);
    at_ = 0;
  }

  io::PackedFile file_;
  std::int64_t left_;  // in the file
  std::vector<std::byte> buffer_;
  std::int64_t at_ = 0;  // in the buffer
};

class BinaryReader {
 public:
  explicit BinaryReader(const std::filesystem::path& path) : bytes_(path) {}

  WordVectors read(const std::function<bool(std::string_view)>& wanted) {
    const std::int64_t words = heading_number(' ', kMostVectors);
    vectors_.width = heading_number('\n', kWidest);
    std::vector<float> numbers(static_cast<std::size_t>(vectors_.width));
    for (std::int64_t i = 1; i <= words; ++i) {
      const std::string word = this->word(i);
      bytes_.take(std::as_writable_bytes(std::span(numbers)));
      const bool finite = std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
      check(finite, ErrorKind::kBadInput, "[vectors] {}: word {}, '{}': expected finite numbers",
            bytes_.name(), i, text::clipped(word, 40));
      if (wanted(word)) vectors_.of.emplace(word, numbers);
    }
    if (bytes_.left() > 0 && bytes_.peek() == '\n') bytes_.take();
    check(bytes_.left() == 0, ErrorKind::kBadInput,
          "[vectors] {}: expected {} words, as its first line says, got {} more bytes",
          bytes_.name(), words, bytes_.left());
    return std::move(vectors_);
  }

 private:
  std::int64_t heading_number(char end, std::int64_t most) {
    constexpr std::size_t kMostDigits = 10;
    std::string text;
    while (text.size() <= kMostDigits && bytes_.left() > 0 && bytes_.peek() != end) {
      text += bytes_.take();
    }
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && stop == text.data() + text.size();
    check(whole && number >= 1 && number <= most && bytes_.left() > 0, ErrorKind::kBadInput,
          "[vectors] {}: expected 'words width' in its first line, up to {} words of up to {} "
          "numbers, got '{}'",
          bytes_.name(), kMostVectors, kWidest, text::clipped(text, 40));
    bytes_.take();
    return number;
  }

  std::string word(std::int64_t number) {
    if (number > 1 && bytes_.peek() == '\n') bytes_.take();  // after the numbers before
    std::string word;
    while (bytes_.peek() != ' ' && word.size() <= kMostBytes) word += bytes_.take();
    check(!word.empty() && word.size() <= kMostBytes, ErrorKind::kBadInput,
          "[vectors] {}: word {}: expected 1 to {} bytes and a space, got '{}'", bytes_.name(),
          number, kMostBytes, text::clipped(word, 40));
    bytes_.take();
    return word;
  }

  ByteReader bytes_;
  WordVectors vectors_;
};

}  // namespace

WordVectors read_binary_vectors(const std::filesystem::path& path,
                                const std::function<bool(std::string_view)>& wanted) {
  return BinaryReader(path).read(wanted);
}

}  // namespace keel::models
