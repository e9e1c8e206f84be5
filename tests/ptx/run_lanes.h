// Runs PTX in tests: a kernel over arrays, and single instructions over many operands.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/ptx/block.h"
#include "tests/ptx/decode.h"

namespace keel::ptx {

using Array = std::vector<std::uint64_t>;

// A module of one kernel `k` that takes the addresses of arrays, p0, p1 and so on.
std::string kernel_text(int arrays, const std::string& body);

struct Grid {
  std::int64_t blocks = 1;
  int threads = 32;
};

// Runs kernel `k` with the addresses of these arrays. Throws Fault.
void run_kernel(const std::string& text, std::vector<Array>& arrays, Grid grid);
// The same; returns what it counted.
Counts counts_of(const std::string& text, std::vector<Array>& arrays, Grid grid);

// The results of an instruction for operands given in columns, one for each source; `result` says
// which of its results. Operands may be literals: those are given as text, by their place.
Array results_of(const std::string& name, const std::vector<Array>& columns, int result = 0);
// The instructions that `results_of` was asked for.
std::set<std::string>& applied();

// The text of the Fault, or "" if none is thrown.
std::string fault_of(const std::function<void()>& run);

}  // namespace keel::ptx
