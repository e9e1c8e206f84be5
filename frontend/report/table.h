// Tables in the formats of files.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace keel::report {

// Rows of text, the first being the heading.
using Rows = std::vector<std::vector<std::string>>;

// Comma-separated values as RFC 4180 has them, but with plain line ends: a field with a comma, a
// quote or a line end stands in quotes, and its quotes are doubled.
std::string csv_text(const Rows& rows);

// A table of Markdown, upright bars escaped.
std::string markdown_text(const Rows& rows);

// A number with all its digits; "" without one.
std::string exact_text(std::optional<double> value);

}  // namespace keel::report
