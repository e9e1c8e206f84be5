// Which kernels of a step wait for which: those that use the same memory, unless both only read it.
// A recorded step keeps no other order, so that a GPU runs kernels at the same time that do not
// touch each other's results.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/runtime/backend.h"

namespace keel::cuda {

// Bytes that a kernel reads, or writes.
struct Access {
  const std::byte* begin = nullptr;
  std::int64_t bytes = 0;
  bool is_written = false;
  bool is_workspace = false;
};

// A kernel that says which memory it uses.
struct PlacedKernel {
  Kernel run;
  std::vector<Access> accesses;

  void operator()() const { run(); }
};

// Whether two kernels must keep their order: one writes what the other reads or writes.
bool interfere(std::span<const Access> a, std::span<const Access> b);

// A node uses its inputs, its outputs and its workspace.
std::vector<Access> accesses_of(const Binding& binding, std::int64_t workspace);

// For each kernel, in their order, the earlier kernels that it waits for, the latest first. One for
// which another of them waits is left out.
using Dependencies = std::vector<std::vector<int>>;
Dependencies dependencies_of(std::span<const std::vector<Access>> kernels);
// Each kernel waits for the one before it.
Dependencies in_a_row(std::size_t kernels);
// The dependencies of kernels as a backend has bound them: in a row unless all are PlacedKernel.
Dependencies dependencies_of(std::span<const Kernel> kernels);

}  // namespace keel::cuda
