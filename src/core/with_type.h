// From an element type to code that is compiled for it.
#pragma once

#include "src/core/dtype_set.h"
#include "src/core/error.h"

namespace keel {

// Calls f with a value of that one of the C++ types Ts in which elements of `dtype` are stored.
// Another type is a mistake of the caller, who has to know that it does not come:
// Error{kCheckFailed} names it.
template <class... Ts, class F>
void with_type(DType dtype, F f) {
  const bool is_known = ((dtype == dtype_of<Ts>() && (f(Ts{}), true)) || ...);
  check(is_known, ErrorKind::kCheckFailed, "element type: expected {}, got {}",
        (DTypes() | ... | DTypes(dtype_of<Ts>())).text(), name_of(dtype));
}

}  // namespace keel
