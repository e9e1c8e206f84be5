// Codes of languages.
#pragma once

#include <string_view>

namespace keel::text {

// Whether it is a two-letter code of ISO 639-1, such as en, or Moses' cz for Czech.
bool is_language(std::string_view code);

}  // namespace keel::text
