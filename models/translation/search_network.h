// The two networks that a search runs in place of the whole one: carries take the keys and values
// of earlier positions from step to step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/nn/transformer.h"
#include "frontend/task/network.h"

namespace keel::models {

// kEncodeNetwork reads the sentences of a group and leaves the keys and values that the decoder's
// layers look up in them. Sizes are {sentences, source length}; the values of a batch:
//   source       i32 (sentences, source length)   numbers, kEnd after them, then kPad
//   source_mask  u8 (sentences, source length)    1 where there is a token
inline constexpr std::string_view kEncodeNetwork = "encode";
enum EncodeInput : std::size_t { kEncodeSource, kEncodeMask };

// kStepNetwork extends every hypothesis of the group by one position. The rows of a sentence are
// consecutive, equally many for each. Sizes are {rows, sentences, source length, room}; room =
// room_for(position) positions; the values of a batch:
//   last         i32 (rows)            the symbol before the position; kEnd before the first
//   origin       i32 (rows)            the row in which the hypothesis was at the last step
//   position     i32 (1)               the number of the position, from 0 on
//   place        i32 ()                its place in the last chunk of the room
//   seen         u8 (rows, room)       1 up to the position, and 0 in rows without a hypothesis
//   source_mask  u8 (sentences, source length)
// Predictions are those of the whole network: scores, symbols, end.
inline constexpr std::string_view kStepNetwork = "step";
enum StepInput : std::size_t { kLast, kOrigin, kPosition, kPlace, kSeen, kStepMask };

std::vector<task::Input> search_inputs(std::string_view network, const task::Sizes& sizes);

// Keys and values are kept in chunks of 16, 16, 32, 64, ... positions, each a carry: a longer
// search gets one more chunk and moves none, and few programs serve all its steps.
std::int64_t chunk_begin(std::int64_t chunk);
std::int64_t chunk_of(std::int64_t position);
// The end of the chunk that holds a position.
std::int64_t room_for(std::int64_t position);

// The carries of a layer's keys and values of the encoder's output, (sentences, source length,
// width). `layer` is the layer's scope.
nn::AttentionMemory kept_source(nn::Net& net, const std::string& layer, const Shape& shape);

// Appends a position's keys and values to those of the earlier positions, each row continuing its
// origin, and keeps them all.
nn::AttentionMemory joined(nn::Net& net, const std::string& layer, const task::Inputs& in,
                           const nn::AttentionMemory& now);

}  // namespace keel::models
