// Bytes as files have them, and tensors compared by theirs.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "src/core/tensor.h"

namespace keel::io {

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string u32(std::uint32_t value) { return raw(value); }

// Bytes with those from `at` on replaced.
inline std::string with(std::string bytes, std::size_t at, std::string_view replacement) {
  return bytes.replace(at, replacement.size(), replacement);
}

// Whether type, shape and all bytes are equal.
inline bool same(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), std::size_t(a.bytes())) == 0;
}

}  // namespace keel::io
