// Tables as text in file formats.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace keel::report {

// Rows of text; the first is the heading.
using Rows = std::vector<std::vector<std::string>>;

// Comma-separated values as in RFC 4180, but with plain line ends: a field with a comma, a quote or
// a line end is put in quotes, and its own quotes are doubled.
std::string csv_text(const Rows& rows);

// A table in Markdown, with upright bars escaped.
std::string markdown_text(const Rows& rows);

// A number with all its digits; "" if there is none.
std::string exact_text(std::optional<double> value);

}  // namespace keel::report
