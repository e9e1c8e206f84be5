// The facts that all ranks of one command must have in common.
#pragma once

#include "frontend/train/same_ranks.h"
#include "src/runtime/backend.h"

namespace keel::cli {

// This program, by its version and a checksum of its file, and what decides the bits of the
// backend's products: backend, versions, instruction set, how bf16 runs. Neither threads nor the
// numbers of devices are facts, for they change no bit.
train::RankFacts program_facts(const Backend& backend);

// Throws Error{kBadInput}, naming rank and fact, if a rank has others. It also compares `more`, the
// options of the command.
void expect_same_ranks(Communicator& ranks, const Backend& backend, const train::RankFacts& more);

}  // namespace keel::cli
