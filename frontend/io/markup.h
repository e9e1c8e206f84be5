// Makes text from outside safe to show, and to put into SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace keel::io {

// Valid UTF-8 on one line: control characters, U+FFFE, U+FFFF and invalid bytes become U+FFFD.
std::string clean_text(std::string_view text);

// clean_text with & < > " as entities, for an element's text or an attribute in double quotes.
std::string escape_markup(std::string_view text);

}  // namespace keel::io
