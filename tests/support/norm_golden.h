// Worked examples of the norm variants: 4 rows of 6 features, eps 1e-5, six decimals.
#pragma once

#include <string_view>

#include "src/core/tensor.h"

namespace keel::test {

// The numbers under `key` of a section, such as ("LayerNorm", "dx"), in float64: (4, 6) for a
// matrix, (n) for a single row. Section "inputs" holds x, dy, gamma and beta. Throws Error{kUsage}
// for an unknown name.
Tensor golden(std::string_view section, std::string_view key);

// CHECKs |got - expected| <= 1e-5, half a digit of what the files print.
void check_near(const Tensor& got, const Tensor& expected);

}  // namespace keel::test
