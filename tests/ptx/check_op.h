// Compares an instruction with its definition over all combinations of values at the edges.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/ptx/run_lanes.h"

namespace keel::ptx {

template <class T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return {false, true};
  } else if constexpr (std::is_floating_point_v<T>) {
    const T tiny = Limits::denorm_min(), least = Limits::min(), most = Limits::max();
    std::vector<T> all = {0,
                          1,
                          T(1.5),
                          2,
                          3,
                          T(0.1),
                          T(0.5),
                          T(2.5),
                          least,
                          least - tiny,
                          tiny,
                          3 * tiny,
                          most,
                          most / 2,
                          Limits::infinity(),
                          1 + Limits::epsilon(),
                          T(2147483648.0),
                          T(2147483647.0),
                          T(4294967296.0),
                          T(9.2233720368547758e18),
                          T(1.8446744073709552e19),
                          T(127.5),
                          T(1e-3),
                          T(1e10)};
    for (std::size_t i = 0, count = all.size(); i < count; ++i) all.push_back(-all[i]);
    all.push_back(Limits::quiet_NaN());
    return all;
  } else {
    using U = std::make_unsigned_t<T>;
    constexpr int kWidth = 8 * sizeof(T);
    std::vector<T> all;
    for (const std::uint64_t bits :
         {0ull, 1ull, 2ull, 3ull, 7ull, 15ull, 16ull, 31ull, 32ull, 33ull, 63ull, 64ull, 255ull,
          256ull, 0x1234567890abcdefull, 0xfedcba0987654321ull, ~0ull, ~1ull}) {
      all.push_back(T(U(bits)));
    }
    all.push_back(T(U(1) << (kWidth - 1)));
    all.push_back(T((U(1) << (kWidth - 1)) - 1));
    return all;
  }
}

template <class T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Whether an instruction may make this in place of what was expected: any NaN for a NaN, but of
// float32 the one that PTX names, if the instruction computes.
template <class T>
bool agrees(std::uint64_t got, T expected) {
  if constexpr (std::is_floating_point_v<T>) {
    if (expected != expected) return from_bits<T>(got) != from_bits<T>(got);
  }
  return got == bits_of(expected);
}

// All combinations of the edges of types, one column for each.
template <class... From>
std::vector<std::tuple<From...>> combinations() {
  std::vector<std::tuple<From...>> all;
  const std::tuple<std::vector<From>...> values(edges<From>()...);
  std::apply(
      [&](const auto&... column) {
        const std::size_t total = (column.size() * ... * 1);
        for (std::size_t i = 0; i < total; ++i) {
          std::size_t rest = i;
          const auto next = [&](const auto& values) {
            const auto value = values[rest % values.size()];
            rest /= values.size();
            return value;
          };
          all.push_back(std::tuple<From...>{next(column)...});
        }
      },
      values);
  return all;
}

template <class To, class... From>
void check_definition(const std::string& name, To (*expected)(From...)) {
  CAPTURE(name);
  const auto cases = combinations<From...>();
  std::vector<Array> columns(sizeof...(From));
  for (const auto& one : cases) {
    std::size_t place = 0;
    std::apply([&](const auto&... value) { (columns[place++].push_back(bits_of(value)), ...); },
               one);
  }
  const Array got = results_of(name, columns);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const To wanted = std::apply(expected, cases[i]);
    if (agrees(got[i], wanted)) continue;
    CAPTURE(i);
    for (const Array& column : columns) CAPTURE(column[i]);
    CHECK(got[i] == bits_of(wanted));
    return;
  }
  CHECK(!cases.empty());
}

template <class Op>
void check_op(const std::string& name, Op op) {
  check_definition(name, +op);
}

}  // namespace keel::ptx
