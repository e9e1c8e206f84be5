// Common helpers of op tests: small tensors, runs on the reference backend, comparisons and
// refusals.
#pragma once

#include <functional>
#include <string_view>

#include "tests/support/graph_runner.h"

namespace keel::test {

// A float64 tensor.
Tensor f64(const Shape& shape, std::initializer_list<double> values);
Tensor i32(const Shape& shape, std::initializer_list<std::int32_t> values);

// run_case on the reference backend, in float64.
Results run_reference(const OpCase& op_case);

// CHECKs equal shapes and |got - expected| <= tolerance * max(1, largest finite |expected|) for
// every element; NaN and infinities must be met exactly.
void check_close(const Tensor& got, const Tensor& expected, double tolerance = 1e-13);

// CHECKs that `action` throws an Error whose text begins with `beginning` and holds `part`.
void check_refused(const std::function<void()>& action, std::string_view beginning,
                   std::string_view part = "", ErrorKind kind = ErrorKind::kUsage);

// CHECKs that building `build` on inputs of these types is refused with "[op] ... part ...".
void check_op_refused(const std::vector<TensorType>& inputs, const Build& build,
                      std::string_view op, std::string_view part);

}  // namespace keel::test
