// Comparisons for people and for the programs that build and test: a page of HTML with the errors
// of all nodes as a picture, and JUnit XML.
#pragma once

#include <functional>

#include "frontend/compare/comparison.h"

namespace keel::compare {

// The command that compares a node of a subject alone.
using CommandOf = std::function<std::string(const std::string& subject, const std::string& path)>;

// One page that needs nothing but itself.
std::string comparison_page(std::span<const Comparison> comparisons, const CommandOf& command);

// A test suite a subject, a test case a node and backend: failed where it diverges, skipped where
// the backend refuses it.
std::string junit_text(std::span<const Comparison> comparisons, const CommandOf& command);

// The errors of all nodes in the order of the walk, in units of what rounding explains, as SVG.
std::string error_picture(const Comparison& comparison);

}  // namespace keel::compare
