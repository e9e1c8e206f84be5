// Makes rows orthonormal, for initial values.
#pragma once

#include <cstddef>
#include <vector>

namespace keel::nn {

// A matrix, stored row by row.
struct RowMatrix {
  std::size_t rows, cols;  // rows <= cols
  std::vector<double> values;

  double* row(std::size_t i) { return values.data() + i * cols; }
};

// Replaces the rows by orthonormal ones that span the same spaces: row i becomes a combination of
// rows 0 to i, with a positive factor of row i. Modified Gram-Schmidt, run twice: rounding makes
// the first run leave a part of a row's neighbours in it, the larger the nearer the rows were to
// each other (Giraud et al. 2005).
void orthonormalize(RowMatrix& m);

}  // namespace keel::nn
