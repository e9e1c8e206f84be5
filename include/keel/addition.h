// Something of one's own that keel shall know by name: a task, a norm, an op.
#pragma once

#include <functional>

namespace keel {

// keel::program enters each before it reads the command line. A program with a loop of its own
// calls enter() itself, once, before it builds a graph. Throws Error{kUsage} for a name that is
// taken, and while keel::program runs.
struct Addition {
  std::function<void()> enter;
};

}  // namespace keel
