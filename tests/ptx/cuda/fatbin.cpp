#include "tests/ptx/cuda/fatbin.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;
constexpr std::uint16_t kText = 1;             // the kind of an entry that holds PTX
constexpr std::uint64_t kCompressed = 0x8000;  // by Zstandard

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// NVIDIA does not document the format; these are the fields that nvcc 13 was seen to write.
struct Entry {
  const std::byte* at;
  std::uint16_t kind() const { return read<std::uint16_t>(at); }
  std::uint32_t header() const { return read<std::uint32_t>(at + 4); }
  std::uint64_t size() const { return read<std::uint64_t>(at + 8); }
  std::uint32_t packed_size() const { return read<std::uint32_t>(at + 16); }
  bool is_packed() const { return read<std::uint64_t>(at + 40) & kCompressed; }
  std::uint64_t full_size() const { return read<std::uint64_t>(at + 56); }
  const char* content() const { return reinterpret_cast<const char*>(at + header()); }
};

std::string unpacked(const Entry& entry) {
  using Unpack = std::size_t (*)(void*, std::size_t, const void*, std::size_t);
  static void* const library = dlopen("libzstd.so.1", RTLD_NOW);
  static const auto unpack =
      library ? reinterpret_cast<Unpack>(dlsym(library, "ZSTD_decompress")) : nullptr;
  if (!unpack) fail("the PTX is compressed, and there is no libzstd.so.1");
  std::string text(entry.full_size(), '\0');
  const std::size_t size = unpack(text.data(), text.size(), entry.content(), entry.packed_size());
  if (size != text.size()) fail("the PTX cannot be unpacked");
  return text;
}

}  // namespace

std::string text_of_fatbin(const void* fatbin) {
  const auto* at = static_cast<const std::byte*>(fatbin);
  if (read<std::uint32_t>(at) != kMagic) fail("a fat binary that begins otherwise than nvcc's");
  const std::byte* const end = at + read<std::uint16_t>(at + 6) + read<std::uint64_t>(at + 8);
  std::string text;
  for (Entry entry{at + read<std::uint16_t>(at + 6)}; entry.at < end;
       entry.at += entry.header() + entry.size()) {
    if (entry.kind() != kText) continue;
    text = entry.is_packed() ? unpacked(entry) : std::string(entry.content(), entry.size());
  }
  if (text.empty()) fail("a fat binary without PTX");
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

}  // namespace keel::ptx
