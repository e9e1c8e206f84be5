// The words of a choice as text for messages and listings.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace keel {

// "none, global or element".
std::string choice_list(std::span<const std::string_view> words);

}  // namespace keel
