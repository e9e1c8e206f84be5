// Reductions of rows and columns, vectorised. All of them accumulate in double, so that a sum's
// error is that of its final rounding.
#pragma once

#include <cstdint>

namespace keel::onednn {

enum class Reduction { kSum, kMax };

// Reduces all n elements of x to their sum, or to the largest. The result for n = 0 is 0 or
// -infinity; it is NaN if an element is NaN.
double reduce_row(Reduction op, const float* x, std::int64_t n);
double reduce_row(Reduction op, const double* x, std::int64_t n);

// A (rows, columns) part of a matrix whose rows lie `stride` elements apart.
template <class T>
struct Panel {
  const T* x;
  std::int64_t rows, columns, stride;
};

// Reduces each column: out[c] joins the elements of column c, from the first row to the last.
void reduce_columns(Reduction op, const Panel<float>& panel, double* out);
void reduce_columns(Reduction op, const Panel<double>& panel, double* out);

}  // namespace keel::onednn
