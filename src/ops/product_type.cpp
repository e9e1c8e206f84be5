#include "src/ops/product_type.h"

#include "src/ops/elementwise.h"

namespace keel {

Value as_factor(Graph& g, Value dy, Value other) {
  const DType dtype = g.type(other).dtype;
  return g.type(dy).dtype == dtype ? dy : ops::cast(g, dy, dtype);
}

}  // namespace keel
