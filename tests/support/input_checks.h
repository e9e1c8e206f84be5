// Shared helpers of the tests of files and data: packing bytes, and checking a refusal.
#pragma once

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "src/core/error.h"
#include "tests/support/temp_dir.h"

namespace keel::test {

inline std::string gzip(std::string_view bytes) {
  TempDir folder;
  const std::filesystem::path path = folder / "packed";
  gzFile file = gzopen(path.c_str(), "wb");
  gzfwrite(bytes.data(), 1, bytes.size(), file);
  gzclose(file);
  return read_bytes(path);
}

// Whether `action` throws one line of Error{kind} that contains `text`.
template <class Action>
bool refuses(ErrorKind kind, std::string_view text, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    CAPTURE(message);
    CHECK(error.kind() == kind);
    CHECK(message.find(text) != std::string_view::npos);
    CHECK(message.find('\n') == std::string_view::npos);
    return true;
  }
  return false;
}

// 64-bit FNV-1a.
inline std::uint64_t fnv(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037u;
  for (char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

}  // namespace keel::test
