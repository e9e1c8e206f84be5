// Suggestions for mistyped names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace keel {

// The candidate with the smallest edit distance (Levenshtein); "" if there are no candidates.
std::string nearest(std::string_view name, std::span<const std::string> candidates);

// "'lernorm' is unknown; nearest: 'layernorm'", for error messages.
std::string unknown_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace keel
