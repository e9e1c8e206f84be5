#include "src/core/error.h"

namespace keel {

void fail_with(ErrorKind kind, fmt::string_view text, fmt::format_args args) {
  throw Error(kind, fmt::vformat(text, args));
}

}  // namespace keel
