// Makes an instruction of a function of one lane.
#pragma once

#include <cstring>
#include <utility>

#include "tests/ptx/forms.h"
#include "tests/ptx/warp.h"

namespace keel::ptx {

template <class T>
constexpr Type type_of() {
  return std::is_same_v<T, bool> ? Type::kPredicate : Type(sizeof(T));
}

// The lanes of a register that an instruction reads.
template <class T>
struct Source {
  explicit Source(const std::byte* place) : values(reinterpret_cast<const T*>(place)) {}
  T operator[](int lane) const { return values[lane]; }
  const T* values;
};
template <>
struct Source<bool> {
  explicit Source(const std::byte* place) { std::memcpy(&lanes, place, sizeof lanes); }
  bool operator[](int lane) const { return lanes >> lane & 1; }
  Lanes lanes;
};

// Writes a register in the lanes that take part.
template <class T>
inline void keep(std::byte* place, const T (&made)[kLanes], Lanes lanes) {
  if (lanes == ~Lanes{0}) {
    std::memcpy(place, made, sizeof made);
    return;
  }
  T* const to = reinterpret_cast<T*>(place);
  for (int lane = 0; lane < kLanes; ++lane) to[lane] = lanes >> lane & 1 ? made[lane] : to[lane];
}
inline void keep_lanes(std::byte* place, Lanes made, Lanes lanes) {
  Lanes old = 0;
  std::memcpy(&old, place, sizeof old);
  made = (old & ~lanes) | (made & lanes);
  std::memcpy(place, &made, sizeof made);
}
inline void keep(std::byte* place, const bool (&made)[kLanes], Lanes lanes) {
  Lanes bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) bits |= Lanes{made[lane]} << lane;
  keep_lanes(place, bits, lanes);
}

template <auto kOp, class To, class... From>
struct LaneOp {
  template <std::size_t... kPlace>
  static void run_all(Warp& warp, const Instruction& i, Lanes lanes,
                      std::index_sequence<kPlace...>) {
    const std::tuple<Source<From>...> sources(Source<From>(warp.at(i.place[1 + kPlace]))...);
    To made[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) made[lane] = kOp(std::get<kPlace>(sources)[lane]...);
    keep(warp.at(i.place[0]), made, lanes);
  }
  static void run(Warp& warp, const Instruction& i, Lanes lanes) {
    run_all(warp, i, lanes, std::index_sequence_for<From...>());
  }
};

template <auto kOp, class Op, class To, class... From>
void add_lane_op(Forms& forms, std::string name, To (Op::*)(From...) const) {
  forms.add({std::move(name),
             LaneOp<kOp, To, From...>::run,
             Flow::kPlain,
             1,
             {type_of<To>(), type_of<From>()...},
             {}});
}

// Adds an instruction that does to every lane what the function kOp does.
template <auto kOp>
void add(Forms& forms, std::string name) {
  using Op = decltype(kOp);
  add_lane_op<kOp, Op>(forms, std::move(name), &Op::operator());
}

}  // namespace keel::ptx
