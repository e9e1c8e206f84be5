// Reads one text from a JSON object, such as a line of a file of JSON lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace keel::io {

// The text under `key` in the JSON object `json`; nothing if `json` is not an object, if it has no
// text under `key`, or if it has `key` twice.
std::optional<std::string> json_text(std::string_view json, std::string_view key);

// The same, but an integer also counts, as its digits.
std::optional<std::string> json_word(std::string_view json, std::string_view key);

// The value under `key`, whatever it is, as JSON for messages; nothing if `json` is not an object,
// or if it has no such key or has it twice.
std::optional<std::string> json_value(std::string_view json, std::string_view key);

}  // namespace keel::io
