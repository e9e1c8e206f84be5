// The singular values of a table of embeddings (Shen et al. 2020, figure 6).
#pragma once

#include <cstdint>
#include <vector>

#include "src/core/tensor.h"

namespace keel::study {

// The singular values of the kept rows of a table (n, d), with n flags; d values, the largest
// first. They are square roots of the eigenvalues of the Gram matrix (d, d) in float64, good down
// to 1e-7 of the largest. Rows are not centred.
std::vector<double> singular_values_of(const Tensor& table, const std::vector<bool>& kept);

struct SpectrumSummary {
  double area = 0;            // the mean of s_i / s_1: 1 when all are equal, 1 / d of rank 1
  double effective_rank = 0;  // exp of the entropy of s_i / sum s
};
SpectrumSummary summary_of(const std::vector<double>& values);

}  // namespace keel::study
