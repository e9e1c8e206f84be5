// TFRecord framing and the few protobuf fields that scalar events need, encoded by hand.
#include "frontend/io/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "frontend/io/markup.h"

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

// google.protobuf.Value: number_value (2), string_value (3) or bool_value (4).
std::string hyperparameter_value(const std::string& text) {
  if (text == "true" || text == "false") return int_field(4, text == "true" ? 1 : 0);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && std::isfinite(number) ? double_field(2, number)
                                        : bytes_field(3, clean_text(text));
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

// Its metadata say all. TensorBoard expects a tensor beside them, which has no elements: dtype (1)
// DT_FLOAT, shape (2) of one dim (2) of size 0.
void EventFile::add_hyperparameters(std::string_view tag, std::string_view content,
                                    double wall_time) {
  const std::string plugin = bytes_field(1, "hparams") + bytes_field(2, content);
  const std::string tensor = int_field(1, 1) + bytes_field(2, bytes_field(2, ""));
  const std::string value =
      bytes_field(1, tag) + bytes_field(8, tensor) + bytes_field(9, bytes_field(1, plugin));
  file_.write(tf_record(double_field(1, wall_time) + bytes_field(5, bytes_field(1, value))));
}

void EventFile::add_settings(std::span<const std::pair<std::string, std::string>> settings,
                             double wall_time) {
  std::string info;
  for (const auto& [name, text] : settings) {
    const std::string value = hyperparameter_value(text);
    info += bytes_field(1, bytes_field(1, name) + bytes_field(2, value));
  }
  info += double_field(5, wall_time);
  add_hyperparameters("_hparams_/session_start_info", bytes_field(3, info), wall_time);
}

void EventFile::add_end(bool success, double wall_time) {
  constexpr std::int64_t kSuccess = 1, kFailure = 2;
  const std::string info = int_field(1, success ? kSuccess : kFailure) + double_field(2, wall_time);
  add_hyperparameters("_hparams_/session_end_info", bytes_field(4, info), wall_time);
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
