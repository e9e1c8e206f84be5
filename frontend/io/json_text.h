// One text out of a JSON object, such as a line of a file of JSON lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace keel::io {

// What stands under `key` in the object that `json` spells; nothing where that is no object, or
// where no text stands there.
std::optional<std::string> json_text(std::string_view json, std::string_view key);

// The same, where a whole number stands for its digits.
std::optional<std::string> json_word(std::string_view json, std::string_view key);

}  // namespace keel::io
