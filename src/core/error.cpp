#include "src/core/error.h"

#include "src/core/shown.h"

namespace keel {

// Cuts the middle out of a message that repeats a long input.
void fail_with(ErrorKind kind, fmt::string_view text, fmt::format_args args) {
  throw Error(kind, shortened(fmt::vformat(text, args), kMostShownBytes));
}

}  // namespace keel
