#include "frontend/nn/orthogonal.h"

#include <algorithm>
#include <cmath>

namespace keel::nn {
namespace {

// Rows that are worked on together, so that each row before them is fetched once for all.
constexpr std::size_t kPanel = 32;

// In eight running sums, which a register can hold side by side.
double dot(const double* a, const double* b, std::size_t n) {
  constexpr std::size_t kSums = 8;
  double sums[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (std::size_t k = 0; k < kSums; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < n; ++i) sums[i % kSums] += a[i] * b[i];
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
}

// Takes from `row` what it has of the unit vector q.
void remove_part(const double* q, double* row, std::size_t n) {
  const double share = dot(q, row, n);
  for (std::size_t i = 0; i < n; ++i) row[i] -= share * q[i];
}

void gram_schmidt(RowMatrix& m) {
  for (std::size_t first = 0; first < m.rows; first += kPanel) {
    const std::size_t last = std::min(first + kPanel, m.rows);
    for (std::size_t k = 0; k < first; ++k) {
      for (std::size_t i = first; i < last; ++i) remove_part(m.row(k), m.row(i), m.cols);
    }
    for (std::size_t i = first; i < last; ++i) {
      for (std::size_t k = first; k < i; ++k) remove_part(m.row(k), m.row(i), m.cols);
      const double norm = std::sqrt(dot(m.row(i), m.row(i), m.cols));
      for (std::size_t e = 0; e < m.cols; ++e) m.row(i)[e] /= norm;
    }
  }
}

}  // namespace

void orthonormalize(RowMatrix& m) {
  for (int run = 0; run < 2; ++run) gram_schmidt(m);
}

}  // namespace keel::nn
