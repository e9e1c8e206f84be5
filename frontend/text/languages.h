// Codes of languages.
#pragma once

#include <string_view>

namespace keel::text {

// Whether it is a two-letter code of ISO 639-1, such as en, or one of Moses' others: cz for Czech,
// mni, tdt (Tetun) and yue.
bool is_language(std::string_view code);

}  // namespace keel::text
