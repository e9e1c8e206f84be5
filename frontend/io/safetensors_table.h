// Parses the JSON of a safetensors header into a table. Internal to safetensors_header.cpp.
#pragma once

#include <string>
#include <string_view>

#include "frontend/io/safetensors_header.h"

namespace keel::io {

// The table in `text`, whose ranges are not checked: see parse_header. Checksums stay among the
// metadata.
TensorTable read_table(std::string_view text, const std::string& path);

// Throws Error{kBadInput} naming the file and the place in it.
[[noreturn]] void refuse_file(const std::string& path, std::string_view where,
                              std::string_view expected, std::string_view got);

std::string tensor_called(std::string_view name);

}  // namespace keel::io
