// Arithmetic of numbers of several words: the carry of one instruction enters the next. Each lane
// has one flag for it; a difference's carry is its borrow.
#include "tests/ptx/integers.h"
#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

template <auto kOp, bool kTakes, bool kGives, int kSources>
void run_wide(Warp& warp, const Instruction& i, Lanes lanes) {
  const Source<u32> a(warp.at(i.place[1])), b(warp.at(i.place[2]));
  const Source<u32> c(warp.at(i.place[kSources]));  // of two sources the second, unused
  u32 made[kLanes];
  Lanes carries = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const u32 carry = kTakes ? warp.carry() >> lane & 1 : 0;
    const u64 sum = kOp(a[lane], b[lane], c[lane], carry);
    made[lane] = u32(sum);
    carries |= Lanes{(sum >> 32) != 0} << lane;
  }
  keep(warp.at(i.place[0]), made, lanes);
  if (kGives) warp.set_carry((warp.carry() & ~lanes) | (carries & lanes));
}

template <auto kOp, int kSources>
void add_wide(Forms& forms, const std::string& stem, const std::string& tail) {
  const auto put = [&](const std::string& name, Handler run) {
    forms.add({name, run, Flow::kPlain, 1, std::vector<Type>(1 + kSources, Type::kWord), {}});
  };
  put(stem + tail + ".cc.u32", run_wide<kOp, false, true, kSources>);
  put(stem + "c" + tail + ".cc.u32", run_wide<kOp, true, true, kSources>);
  put(stem + "c" + tail + ".u32", run_wide<kOp, true, false, kSources>);
}

}  // namespace

void add_wide_forms(Forms& forms) {
  add_wide<[](u32 a, u32 b, u32, u32 carry) { return u64{a} + b + carry; }, 2>(forms, "add", "");
  add_wide<[](u32 a, u32 b, u32, u32 borrow) { return u64{a} - b - borrow; }, 2>(forms, "sub", "");
  add_wide<[](u32 a, u32 b, u32 c, u32 carry) { return u64{u32(u64{a} * b)} + c + carry; }, 3>(
      forms, "mad", ".lo");
  add_wide<[](u32 a, u32 b, u32 c, u32 carry) { return (u64{a} * b >> 32) + c + carry; }, 3>(
      forms, "mad", ".hi");
}

}  // namespace keel::ptx
