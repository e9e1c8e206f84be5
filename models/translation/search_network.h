// The two networks that a search runs in the place of the whole one: what earlier positions had for
// keys and values is carried from step to step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/nn/transformer.h"
#include "frontend/task/network.h"

namespace keel::models {

// kEncodeNetwork reads the sentences of a group and leaves what every layer of the decoder looks up
// in them. Sizes are {sentences, source length}; the values of a batch:
//   source       i32 (sentences, source length)   numbers, kEnd after them, then kPad
//   source_mask  u8 (sentences, source length)    1 where there is a token
inline constexpr std::string_view kEncodeNetwork = "encode";
enum EncodeInput : std::size_t { kEncodeSource, kEncodeMask };

// kStepNetwork goes on by one position with every hypothesis of the group. The rows of a sentence
// stand one after the other, as many for each. Sizes are {rows, sentences, source length, room},
// the room, room_for(position), being for so many positions; the values of a batch:
//   last         i32 (rows)            the symbol before the position; kEnd before the first
//   origin       i32 (rows)            the row in which the hypothesis was at the last step
//   position     i32 (1)               which position it is, from 0 on
//   place        i32 ()                that within the last chunk of the room
//   seen         u8 (rows, room)       1 up to the position, and 0 in rows of no hypothesis
//   source_mask  u8 (sentences, source length)
// Predictions are those of the whole network: scores, symbols, end.
inline constexpr std::string_view kStepNetwork = "step";
enum StepInput : std::size_t { kLast, kOrigin, kPosition, kPlace, kSeen, kStepMask };

std::vector<task::Input> search_inputs(std::string_view network, const task::Sizes& sizes);

// Keys and values are kept in chunks of 16, 16, 32, 64, ... positions, each a carry: a search that
// goes on gets one more and moves none, and few programs serve all its steps.
std::int64_t chunk_begin(std::int64_t chunk);
std::int64_t chunk_of(std::int64_t position);
// Where the chunk of that position ends.
std::int64_t room_for(std::int64_t position);

// The carries of a layer's keys and values of what the encoder gives, (sentences, source length,
// width). `layer` is the layer's scope.
nn::AttentionMemory kept_source(nn::Net& net, const std::string& layer, const Shape& shape);

// Joins a position's keys and values to those of the positions before, each row going on from its
// origin, and keeps them all.
nn::AttentionMemory joined(nn::Net& net, const std::string& layer, const task::Inputs& in,
                           const nn::AttentionMemory& now);

}  // namespace keel::models
