#include "tests/ptx/warp.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/ptx/block.h"
#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

// A warp that has branched so often will not end.
constexpr std::int64_t kMostBranches = std::int64_t{1} << 28;

template <class T>
T lane_value(const Warp& warp, std::uint32_t place, int lane) {
  T value{};
  std::memcpy(&value, warp.at(place) + std::size_t(lane) * sizeof(T), sizeof value);
  return value;
}

}  // namespace

void Warp::start(Lanes lanes) {
  present_ = live_ = lanes;
  carry_ = 0;
  steps_ = 0;
  others_.clear();
  now_ = {};
  put({0, lanes, false});
  state_ = State::kReady;
}

int Warp::line() const {
  const auto& code = block_.code().instructions;
  return now_.at < int(code.size()) ? code[std::size_t(now_.at)].line : 0;
}

void Warp::run() {
  while (choose() && follow()) {
  }
}

// Joins lanes that are at the same place; those that waited there look again.
void Warp::put(Path path) {
  for (Path& other : others_) {
    if (other.at == path.at) {
      other.lanes |= path.lanes;
      other.waits = false;
      return;
    }
  }
  others_.push_back(path);
}

// Takes the lanes that go on; false when there are none.
bool Warp::choose() {
  if (others_.empty()) {
    state_ = State::kDone;
    return false;
  }
  Path* best = nullptr;
  for (Path& path : others_) {
    if (!path.waits && (!best || path.at < best->at)) best = &path;
  }
  if (!best) fail_stuck();
  now_ = *best;
  *best = others_.back();
  others_.pop_back();
  return true;
}

void Warp::fail_stuck() const {
  const auto& code = block_.code().instructions;
  std::string places;
  for (const Path& path : others_) {
    const Instruction& i = code[std::size_t(path.at)];
    places += fmt::format("{}lanes {:#x} at line {} ({})", places.empty() ? "" : ", ", path.lanes,
                          i.line, i.form->name);
  }
  fail("divergent warp {}: {} wait for lanes that do not come; {:#x} have returned", number_,
       places, present_ & ~live_);
}

Lanes Warp::guarded(const Instruction& i) const {
  if (!i.is_guarded) return now_.lanes;
  Lanes guard = 0;
  std::memcpy(&guard, at(i.guard), sizeof guard);
  return now_.lanes & (i.is_negated ? ~guard : guard);
}

// Runs the chosen lanes until others have to be looked at; false when the warp has to stop.
bool Warp::follow() {
  const Instruction* const code = block_.code().instructions.data();
  Tally* const tally = block_.tally();
  while (true) {
    for (const Path& other : others_) {
      if (other.at == now_.at) {
        put(now_);
        return true;
      }
    }
    const Instruction& i = code[now_.at];
    const Lanes lanes = guarded(i);
    switch (i.flow) {
      case Flow::kBranch:
        if (tally) tally->note_branch(i);
        if (branch(i, lanes)) return true;
        continue;
      case Flow::kExit:
        if (lanes && leave(lanes)) return true;
        break;
      case Flow::kBarrier:
        if (lanes != now_.lanes) fail("a barrier under a predicate that not all lanes have");
        return arrive(i);
      case Flow::kTogether:
        if (lanes != now_.lanes) fail("{} under a predicate", i.form->name);
        if (!are_all_here(i)) return wait_for_others();
        [[fallthrough]];
      default:
        if (!lanes) break;
        i.run(*this, i, lanes);
        if (tally) tally->note(i);
    }
    ++now_.at;
  }
}

// Moves the lanes; true if others have to be looked at.
bool Warp::branch(const Instruction& i, Lanes taken) {
  if (++steps_ > kMostBranches) fail("a loop without end");
  const Lanes rest = now_.lanes & ~taken;
  if (others_.empty() && (!rest || !taken)) {
    now_.at = rest ? now_.at + 1 : i.target;
    return false;
  }
  if (rest) put({now_.at + 1, rest, false});
  if (taken) put({i.target, taken, false});
  if (others_.size() > 1) return true;
  now_ = others_.back();
  others_.clear();
  return false;
}

// Lanes return; true if none of those that ran is left.
bool Warp::leave(Lanes lanes) {
  live_ &= ~lanes;
  now_.lanes &= ~lanes;
  return now_.lanes == 0;
}

bool Warp::wait_for_others() {
  now_.waits = true;
  others_.push_back(now_);
  return true;
}

bool Warp::arrive(const Instruction& i) {
  if (now_.lanes != live_) return wait_for_others();
  if (live_ != present_) {
    fail("a barrier that lanes {:#x} of warp {} do not reach: they have returned",
         present_ & ~live_, number_);
  }
  if (block_.tally()) block_.tally()->note_branch(i);
  const int first = std::countr_zero(now_.lanes);
  barrier_ = lane_value<int>(*this, i.place[0], first);
  barrier_threads_ = i.offset > 1 ? lane_value<int>(*this, i.place[1], first) : 0;
  state_ = State::kAtBarrier;
  others_.push_back({now_.at + 1, now_.lanes, false});
  return false;
}

// Whether all lanes are at this instruction that those here name in its last operand.
bool Warp::are_all_here(const Instruction& i) const {
  const std::uint32_t place = i.place[i.form->operands.size() - 1];
  // Mostly all lanes are here and name each other.
  const auto* const masks = reinterpret_cast<const Lanes*>(at(place));
  if (now_.lanes == ~Lanes{0} &&
      std::all_of(masks, masks + kLanes, [](Lanes mask) { return mask == ~Lanes{0}; })) {
    return true;
  }
  for (Lanes left = now_.lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto named = lane_value<Lanes>(*this, place, lane);
    if (!(named >> lane & 1)) fail("lane {} is not in its own mask {:#x}", lane, named);
    if (named & ~live_) fail("mask {:#x} names lanes that are absent or have returned", named);
    if (named & ~now_.lanes) return false;
    for (Lanes rest = named; rest; rest &= rest - 1) {
      if (lane_value<Lanes>(*this, place, std::countr_zero(rest)) != named) {
        fail("lanes {} and {} give different masks", lane, std::countr_zero(rest));
      }
    }
  }
  return true;
}

}  // namespace keel::ptx
