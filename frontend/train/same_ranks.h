// Whether all ranks hold the same. Nothing that they exchange would show that one has drifted: each
// goes on with its own weights, and the sums are those of all.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/io/safetensors.h"
#include "src/runtime/communicator.h"

namespace keel::train {

// Compares what all ranks must have in common, as names and values. If a rank has something else
// than most do (of two, than rank 0), throws Error{kBadInput} in every rank:
// "rank 2 has another instruction set than rank 0: expected 'avx512', got 'avx2'". All ranks call
// this.
using RankFacts = std::vector<std::pair<std::string, std::string>>;
void expect_same_facts(Communicator& ranks, const RankFacts& facts);

// Compares a checksum of names, metadata and values. If a rank holds something else than most do
// (of two, than rank 0), throws Error{kBadInput} in every rank:
// "rank 2 begins with another recipe, other data or other weights than rank 0", where the words
// between the ranks are `has`. All ranks call this.
void expect_same_content(Communicator& ranks, const io::TensorFile& content, std::string_view has);

}  // namespace keel::train
