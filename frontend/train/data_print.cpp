#include "frontend/train/data_print.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

namespace keel::train {
namespace {

constexpr std::int64_t kPicked = 128;

template <class T>
uLong add(uLong crc, std::span<const T> values) {
  return crc32_z(crc, reinterpret_cast<const Bytef*>(values.data()), values.size_bytes());
}

uLong add(uLong crc, const task::Batch& batch) {
  crc = add<std::int64_t>(crc, batch.sizes);
  for (const Tensor& value : batch.values) {
    if (is_floating(value.dtype())) continue;
    crc = add<std::byte>(crc, {value.data(), static_cast<std::size_t>(value.bytes())});
  }
  return crc;
}

std::string print(const char* split, task::Stream& stream) {
  const std::int64_t rows = stream.rows(), picked = std::min(rows, kPicked);
  uLong crc = 0;
  for (std::int64_t i = 0; i < picked; ++i) {
    const std::int64_t row = picked == 1 ? 0 : i * (rows - 1) / (picked - 1);
    crc = add(crc, stream.pick({&row, 1}));
  }
  return fmt::format("{} {} rows, {:08x}", split, rows, crc);
}

}  // namespace

std::string data_print(task::Stream& train, task::Stream& valid) {
  return print("train", train) + "; " + print("valid", valid);
}

}  // namespace keel::train
