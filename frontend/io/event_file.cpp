// TFRecord framing and the few protobuf fields that scalar events need, encoded by hand.
#include "frontend/io/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <bit>

namespace keel::io {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0u);
    table[byte] = crc;
  }
  return table;
}();

// TFRecords hold crcs in this form, for a crc of data that hold their own crc is a weak one.
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u;
}

// The bytes of a number as they lie in memory.
template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Protobuf: fields of number < 16 by their wire type. A negative int64 takes ten bytes.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string tag(int field, int wire_type) { return {static_cast<char>(field << 3 | wire_type)}; }
std::string int_field(int field, std::int64_t value) {
  return tag(field, 0) + varint(static_cast<std::uint64_t>(value));
}
std::string double_field(int field, double value) { return tag(field, 1) + raw(value); }
std::string float_field(int field, float value) { return tag(field, 5) + raw(value); }
std::string bytes_field(int field, std::string_view value) {
  return tag(field, 2) + varint(value.size()).append(value);
}

std::filesystem::path event_path(const std::filesystem::path& directory, double wall_time) {
  // TensorBoard reads files with "tfevents" in their names, in the order of the names.
  return directory / fmt::format("events.out.tfevents.{:017.6f}.keel", wall_time);
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& directory, double wall_time,
                     std::optional<std::int64_t> first_step)
    : file_(event_path(directory, wall_time), O_WRONLY | O_CREAT | O_EXCL | O_APPEND) {
  const std::string time = double_field(1, wall_time);
  file_.write(tf_record(time + bytes_field(3, "brain.Event:2")));
  if (first_step) {
    file_.write(tf_record(time + int_field(2, *first_step) + bytes_field(7, int_field(1, 1))));
  }
}

void EventFile::add_scalar(std::string_view name, std::int64_t step, float value,
                           double wall_time) {
  const std::string summary = bytes_field(1, bytes_field(1, name) + float_field(2, value));
  file_.write(tf_record(double_field(1, wall_time) + int_field(2, step) + bytes_field(5, summary)));
}

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (char c : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::string tf_record(std::string_view data) {
  const std::string length = raw(std::uint64_t{data.size()});
  return length + raw(masked_crc(length)) + std::string(data) + raw(masked_crc(data));
}

}  // namespace keel::io
