// Moves: of values, of a variable's address, and of several registers as one.
#include "tests/ptx/integers.h"
#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

template <class T>
void add_move(Forms& forms, const std::string& name, Flow flow) {
  forms.add(
      {name, LaneOp<[](T a) { return a; }, T, T>::run, flow, 1, {type_of<T>(), type_of<T>()}, {}});
}

}  // namespace

// The parts of a wider register; the first is the lower one. The decoder chooses them for a mov
// with braces, and the narrowing for operands that are wider than an instruction takes.
void add_move_forms(Forms& forms) {
  for (const char* const kind : {"b16", "u16", "s16"}) {
    add_move<u16>(forms, std::string("mov.") + kind, Flow::kPlain);
  }
  for (const char* const kind : {"b32", "u32", "s32", "f32"}) {
    add_move<u32>(forms, std::string("mov.") + kind, Flow::kAddress);
  }
  for (const char* const kind : {"b64", "u64", "s64", "f64"}) {
    add_move<u64>(forms, std::string("mov.") + kind, Flow::kAddress);
  }
  add_move<bool>(forms, "mov.pred", Flow::kPlain);
  for (const char* const space : {"global", "shared", "local", "param"}) {
    add_move<u64>(forms, std::string("cvta.to.") + space + ".u64", Flow::kPlain);
  }
  add<[](u32 low, u32 high) { return u64{high} << 32 | low; }>(forms, "(join.b64)");
  add<[](u64 a) { return u32(a); }>(forms, "(lower.b64)");
  add<[](u64 a) { return u32(a >> 32); }>(forms, "(upper.b64)");
  add<[](u16 low, u16 high) { return u32{high} << 16 | low; }>(forms, "(join.b32)");
  add<[](u32 a) { return u16(a); }>(forms, "(lower.b32)");
  add<[](u32 a) { return u16(a >> 16); }>(forms, "(upper.b32)");
  add<[](u64 a) { return u16(a); }>(forms, "(lowest.b64)");
}

}  // namespace keel::ptx
