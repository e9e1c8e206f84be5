// Operations of a warp's lanes together. The warp has seen to it that all named lanes are there.
#include <bit>

#include "tests/ptx/block.h"
#include "tests/ptx/fault.h"
#include "tests/ptx/integers.h"
#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

// The lane that one reads from, and whether it lies within the segment; see shfl.sync in the PTX
// ISA for the letters.
struct Partner {
  int lane;
  bool is_within;
};

Partner partner(Shuffle mode, int lane, u32 b, u32 c) {
  const int by = int(b & 31), clamp = int(c & 31), segment = int(c >> 8 & 31);
  const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
  int from = lane;
  bool is_within = true;
  switch (mode) {
    case Shuffle::kUp:
      from = lane - by;
      is_within = from >= most;
      break;
    case Shuffle::kDown:
      from = lane + by;
      is_within = from <= most;
      break;
    case Shuffle::kButterfly:
      from = lane ^ by;
      is_within = from <= most;
      break;
    case Shuffle::kIndex:
      from = least | (by & ~segment);
      is_within = from <= most;
  }
  return {is_within ? from : lane, is_within};
}

// Operands: the result, whether the partner is within (if that is asked for), a, b, c, the mask.
template <Shuffle kMode>
void shuffle(Warp& warp, const Instruction& i, Lanes lanes) {
  const Source<u32> a(warp.at(i.place[2])), b(warp.at(i.place[3])), c(warp.at(i.place[4])),
      mask(warp.at(i.place[5]));
  u32 made[kLanes]{};
  bool within[kLanes]{};
  for (Lanes left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const Partner from = partner(kMode, lane, b[lane], c[lane]);
    if (!(mask[lane] >> from.lane & 1)) {
      fail("lane {} takes a value of lane {}, which its mask {:#x} does not name", lane, from.lane,
           mask[lane]);
    }
    made[lane] = a[from.lane];
    within[lane] = from.is_within;
  }
  keep(warp.at(i.place[0]), made, lanes);
  keep(warp.at(i.place[1]), within, lanes);
}

// The lanes of each lane's mask whose predicate holds.
template <class Result, auto kOp>
void vote(Warp& warp, const Instruction& i, Lanes lanes) {
  const Source<bool> a(warp.at(i.place[1]));
  const Source<u32> mask(warp.at(i.place[2]));
  Result made[kLanes]{};
  for (int lane = 0; lane < kLanes; ++lane) made[lane] = kOp(a.lanes & mask[lane], mask[lane]);
  keep(warp.at(i.place[0]), made, lanes);
}

void sync_warp(Warp& warp, const Instruction&, Lanes) {
  warp.block().clock().meet_lanes(warp.number());
}

template <Shuffle kMode>
void add_shuffle(Forms& forms, const char* mode) {
  forms.add({std::string("shfl.sync.") + mode + ".b32",
             shuffle<kMode>,
             Flow::kTogether,
             2,
             {Type::kWord, Type::kPredicate, Type::kWord, Type::kWord, Type::kWord, Type::kWord},
             {}});
}

}  // namespace

void add_together_forms(Forms& forms) {
  add_shuffle<Shuffle::kUp>(forms, "up");
  add_shuffle<Shuffle::kDown>(forms, "down");
  add_shuffle<Shuffle::kButterfly>(forms, "bfly");
  add_shuffle<Shuffle::kIndex>(forms, "idx");
  const auto add_vote = [&](const char* name, Handler run, Type result) {
    forms.add({name, run, Flow::kTogether, 1, {result, Type::kPredicate, Type::kWord}, {}});
  };
  add_vote("vote.sync.any.pred", vote<bool, [](Lanes yes, Lanes) { return yes != 0; }>,
           Type::kPredicate);
  add_vote("vote.sync.all.pred", vote<bool, [](Lanes yes, Lanes mask) { return yes == mask; }>,
           Type::kPredicate);
  add_vote("vote.sync.ballot.b32", vote<u32, [](Lanes yes, Lanes) { return yes; }>, Type::kWord);
  forms.add({"bar.warp.sync", sync_warp, Flow::kTogether, 0, {Type::kWord}, {}});
}

}  // namespace keel::ptx
