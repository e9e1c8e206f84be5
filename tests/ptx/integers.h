// Integers by the names that PTX has for their types.
#pragma once

#include <cstdint>

namespace keel::ptx {

using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Calls f<T>(name) for the types that registers hold.
template <class F>
void for_each_integer(const F& f) {
  f.template operator()<s16>(".s16");
  f.template operator()<s32>(".s32");
  f.template operator()<s64>(".s64");
  f.template operator()<u16>(".u16");
  f.template operator()<u32>(".u32");
  f.template operator()<u64>(".u64");
}

}  // namespace keel::ptx
