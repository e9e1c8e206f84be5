// The forms of pictures, each with its reader. picture.h chooses among them.
#pragma once

#include <string>
#include <string_view>

#include "frontend/io/picture.h"

namespace keel::io {

// A black picture for a file of `bytes` bytes. Throws Error{kBadInput} for a size without pixels,
// of more than kMaxPixels, or of more than such a file can hold.
Picture blank_picture(std::int64_t width, std::int64_t height, std::size_t bytes,
                      const std::string& name);

// Each throws Error{kBadInput}, beginning with `name`, for damage and an early end.
Picture parse_png(std::string_view bytes, const std::string& name);
Picture parse_jpeg(std::string_view bytes, const std::string& name);
Picture parse_netpbm(std::string_view bytes, const std::string& name);

}  // namespace keel::io
