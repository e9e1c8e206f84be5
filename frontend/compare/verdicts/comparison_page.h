// Comparisons for people and for build and test servers: a page of HTML with a picture of the
// errors of all nodes, and JUnit XML.
#pragma once

#include <functional>

#include "frontend/compare/verdicts/comparison.h"

namespace keel::compare {

// The command that compares one node of a subject alone.
using CommandOf = std::function<std::string(const std::string& subject, const std::string& path)>;

// One page of HTML that loads nothing else.
std::string comparison_page(std::span<const Comparison> comparisons, const CommandOf& command);

// One test suite for each subject, one test case for each node and backend: failed if it diverges,
// skipped if the backend refuses it.
std::string junit_text(std::span<const Comparison> comparisons, const CommandOf& command);

// The errors of all nodes in the order of the walk, in units of what rounding explains, as SVG.
std::string error_picture(const Comparison& comparison);

}  // namespace keel::compare
