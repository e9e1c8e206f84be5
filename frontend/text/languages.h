// The codes by which languages are named.
#pragma once

#include <string_view>

namespace keel::text {

// Whether it is a code of two letters of ISO 639-1, such as en, or Moses' cz for Czech.
bool is_language(std::string_view code);

}  // namespace keel::text
