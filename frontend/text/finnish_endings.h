// Endings that Finnish writes after a colon: EU:ssa, NATO:n.
#pragma once

#include <string_view>

namespace keel::text {

// Whether Moses' detokenizer takes the word for a case's ending, perhaps with an owner's and a
// particle after it. The first letter may be a capital.
bool is_finnish_ending(std::u32string_view word);

}  // namespace keel::text
