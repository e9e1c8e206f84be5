// The inputs of a network that translates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "frontend/task/batch.h"

namespace keel::models {

// A pair of sentences as numbers, Dictionary::kEnd at the end of both.
struct NumberedPair {
  std::vector<std::int32_t> source, target;
};

// The label of a position that has none.
inline constexpr std::int32_t kNoToken = -1;

// Sizes are {rows, source length, target length}; the values of a batch, in this order:
//   source       i32 (rows, source length)   numbers, kEnd after them, then kPad
//   source_mask  u8 (rows, source length)    1 where there is a token
//   target_in    i32 (rows, target length)   kEnd, then the target without its own kEnd, then kPad
//   target_out   i32 (rows, target length)   the target with its kEnd, then kNoToken
//   target_mask  u8 (rows, target length)    1 where target_out has a token
//   asked        i32 (rows)                  row * target length + the position of target_in after
//                                            which a search asks for symbols; 0 where none does
// Padding stands after the tokens on both sides, because attention skips masked keys at a row's
// end: a sentence then has the same bits whatever stands beside it. (fairseq puts the source's
// padding in front and counts positions from the first token, so its network computes the
// same.)
enum PairInput : std::size_t { kSource, kSourceMask, kTargetIn, kTargetOut, kTargetMask, kAsked };
std::vector<task::Input> pair_inputs(const task::Sizes& sizes);

// Puts a pair into a place; it must fit.
void put_pair(task::Batch& batch, std::size_t place, const NumberedPair& pair);

}  // namespace keel::models
