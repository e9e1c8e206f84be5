// Dispatch from an element type to code compiled for its C++ type.
#pragma once

#include "src/core/dtype_set.h"
#include "src/core/error.h"

namespace keel {

// Calls f with a value of the one C++ type in Ts that stores elements of `dtype`. Callers must make
// sure that no other type occurs; if one does, this is the caller's bug and throws
// Error{kCheckFailed} that names the type.
template <class... Ts, class F>
void with_type(DType dtype, F f) {
  const bool is_known = ((dtype == dtype_of<Ts>() && (f(Ts{}), true)) || ...);
  check(is_known, ErrorKind::kCheckFailed, "element type: expected {}, got {}",
        (DTypes() | ... | DTypes(dtype_of<Ts>())).text(), name_of(dtype));
}

}  // namespace keel
