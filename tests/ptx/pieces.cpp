#include "tests/ptx/pieces.h"

#include <fmt/format.h>

namespace keel::ptx {

void Memory::add(std::byte* first, std::int64_t bytes) {
  const auto at = reinterpret_cast<std::uint64_t>(first);
  pieces_[at] = {at, at + std::uint64_t(bytes)};
}

void Memory::remove(std::byte* first) {
  pieces_.erase(reinterpret_cast<std::uint64_t>(first));
  latest_ = {};
}

bool Memory::find(std::uint64_t first, std::int64_t bytes) const {
  auto at = pieces_.upper_bound(first);
  if (at == pieces_.begin()) return false;
  --at;
  if (first + std::uint64_t(bytes) > at->second.last) return false;
  latest_ = at->second;
  return true;
}

std::string Memory::whereabouts(std::uint64_t address) const {
  auto at = pieces_.upper_bound(address);
  if (at == pieces_.begin()) return fmt::format("address {:#x}, before all memory", address);
  --at;
  return fmt::format("byte {} of {} bytes", address - at->second.first,
                     at->second.last - at->second.first);
}

}  // namespace keel::ptx
