#include "frontend/io/tar.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "src/core/error.h"

namespace keel::io {
namespace {

// A header is one block; the places of its fields, and of the checksum itself, which counts as
// blanks.
constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kTarName = 0, kTarNameSize = 100, kTarMode = 100, kTarSize = 124;
constexpr std::size_t kTarChecksum = 148, kTarType = 156, kTarMagic = 257, kTarPrefix = 345;
constexpr std::size_t kTarNumberSize = 12, kTarChecksumSize = 8, kTarPrefixSize = 155;

std::string_view text_at(std::string_view header, std::size_t place, std::size_t size) {
  const std::string_view field = header.substr(place, size);
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

// An octal number with blanks or zeros round it.
std::optional<std::uint64_t> number_at(std::string_view header, std::size_t place,
                                       std::size_t size) {
  std::string_view digits = text_at(header, place, size);
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  std::uint64_t number = 0;
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, number, 8);
  if (error != std::errc() || end != last) return std::nullopt;
  return number;
}

std::uint64_t tar_checksum(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool is_own = i >= kTarChecksum && i < kTarChecksum + kTarChecksumSize;
    sum += is_own ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

std::string tar_name(std::string_view header) {
  const std::string name(text_at(header, kTarName, kTarNameSize));
  if (!header.substr(kTarMagic).starts_with(std::string_view("ustar\0", 6))) return name;
  const std::string_view prefix = text_at(header, kTarPrefix, kTarPrefixSize);
  return prefix.empty() ? name : fmt::format("{}/{}", prefix, name);
}

bool is_end_mark(std::string_view block) {
  return std::ranges::all_of(block, [](char c) { return c == '\0'; });
}

void put_field(std::string& header, std::size_t place, const std::string& value) {
  header.replace(place, value.size(), value);
}

}  // namespace

std::vector<TarEntry> read_tar(std::string_view archive, const std::string& who) {
  std::vector<TarEntry> files;
  for (std::size_t at = 0;;) {
    const auto expect = [&](bool holds, std::string_view expected) {
      check(holds, ErrorKind::kBadInput, "{}: byte {}: expected {}", who, at, expected);
    };
    expect(archive.size() >= at + kTarBlock, "the header of a file or the end mark, got the end");
    const std::string_view header = archive.substr(at, kTarBlock);
    if (is_end_mark(header)) return files;
    expect(number_at(header, kTarChecksum, kTarChecksumSize) == tar_checksum(header),
           "a header of tar with its checksum");
    const std::optional<std::uint64_t> size = number_at(header, kTarSize, kTarNumberSize);
    expect(size.has_value(), "the size of a file");
    const std::size_t rest = archive.size() - at - kTarBlock;
    expect(*size <= rest, "a file that ends before the archive");
    const char type = header[kTarType];
    if (type == '0' || type == '\0') {
      files.push_back({tar_name(header), archive.substr(at + kTarBlock, *size)});
    }
    at += kTarBlock + (*size + kTarBlock - 1) / kTarBlock * kTarBlock;
  }
}

std::string tar_bytes(const std::vector<TarEntry>& files) {
  std::string archive;
  for (const TarEntry& file : files) {
    check(file.name.size() < kTarNameSize, ErrorKind::kUsage,
          "[tar] {}: expected a name of at most {} bytes", file.name, kTarNameSize - 1);
    std::string header(kTarBlock, '\0');
    put_field(header, kTarName, file.name);
    put_field(header, kTarMode, "0000644");
    put_field(header, kTarSize, fmt::format("{:011o}", file.content.size()));
    header[kTarType] = '0';
    put_field(header, kTarMagic, std::string("ustar\00000", 8));
    put_field(header, kTarChecksum, fmt::format("{:06o}", tar_checksum(header)));
    archive += header;
    archive += file.content;
    archive.resize((archive.size() + kTarBlock - 1) / kTarBlock * kTarBlock);
  }
  return archive + std::string(2 * kTarBlock, '\0');
}

}  // namespace keel::io
