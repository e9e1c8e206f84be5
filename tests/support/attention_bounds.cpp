#include "tests/support/attention_bounds.h"

#include <Eigen/Core>
#include <cmath>

namespace keel::test {
namespace {

using Matrix = Eigen::ArrayXXd;
using Row = Eigen::Array<double, 1, Eigen::Dynamic>;

constexpr double kEps = 0x1p-24;
// The terms that products of the bounds themselves may add, and numbers below the normal ones.
constexpr double kSecondOrder = 1.05, kSmallest = 0x1p-120;
constexpr double kSmallestTile = 8;  // keys that a backend takes at a time

// One head of one row.
class Head {
 public:
  Head(const AttentionStep& step, const Results& expected, std::int64_t row, std::int64_t head)
      : step_(step),
        expected_(expected),
        sizes_(attention_sizes(step.q.shape(), step.k.shape(), step.attrs.heads)),
        row_(row),
        head_(head),
        scale_(attention_scale(step.attrs, sizes_)),
        q_(slice(step.q)),
        k_(slice(step.k)),
        v_(slice(step.v)),
        y_(slice(expected.at("y"))),
        dy_(slice(step.dy)),
        keep_(keeps()) {}

  void fill(Results& bounds) const { fill_gradients(bounds, fill_results(bounds)); }

 private:
  // P, its relative bound and the bound of y.
  struct Forward {
    Matrix p, ep, ey;
  };

  Forward fill_results(Results& bounds) const {
    const double n = double(sizes_.keys);
    const Matrix s = scale_ * product(q_, k_);
    const Matrix es =
        kEps * double(sizes_.width + 3) * std::abs(scale_) * product(q_.abs(), k_.abs());
    Forward f{probabilities(s), es, Matrix(q_.rows(), q_.cols())};
    for (Eigen::Index i = 0; i < s.rows(); ++i) {
      const double lse = row_lse(i), range = row_range(s, i);
      const Row e = es.row(i) + kEps * (2 * range + 4 + 6 * (1 + n / kSmallestTile));
      const double mean = (f.p.row(i) * e).sum() + n * kEps;
      const double elog = mean + kEps * (n + 4 + 3 * std::abs(lse) + 3 * std::log(n + 1) + range);
      f.ep.row(i) += elog + kEps * ((s.row(i) - lse).abs() + 6);
      f.ey.row(i) = times(keep_.row(i) * f.p.row(i) * (e + mean + (2 * n + 8) * kEps), v_.abs());
      bounds.at("lse").as<double>()[std::size_t(lse_place(i))] = kSecondOrder * elog + kSmallest;
    }
    store(bounds.at("y"), f.ey);
    return f;
  }

  void fill_gradients(Results& bounds, const Forward& f) const {
    const double w = double(sizes_.width), n = double(sizes_.keys), m = double(sizes_.queries);
    const auto along_keys = [&](const Matrix& terms) -> Matrix {
      return terms.rowwise().sum().replicate(1, sizes_.keys);
    };
    const Matrix delta = along_keys(dy_ * y_), dp = keep_ * product(dy_, v_);
    const Matrix edelta = along_keys(dy_.abs() * f.ey + (w + 2) * kEps * (dy_ * y_).abs());
    const Matrix edp = keep_ * (w + 3) * kEps * product(dy_.abs(), v_.abs());
    const Matrix eds = f.p * ((f.ep + 3 * kEps) * (dp.abs() + delta.abs()) + edp + edelta);
    const Matrix ds = (f.p * (dp - delta)).abs(), kept = keep_ * f.p;
    const double scale = std::abs(scale_);
    store(bounds.at("dq"), scale * times(eds + (n + 4) * kEps * ds, k_.abs()));
    store(bounds.at("dk"), scale * times((eds + (m + 4) * kEps * ds).transpose(), q_.abs()));
    store(bounds.at("dv"), times((kept * (f.ep + (m + 4) * kEps)).transpose(), dy_.abs()));
  }

  Matrix probabilities(const Matrix& s) const {
    Matrix p = Matrix::Zero(s.rows(), s.cols());
    for (Eigen::Index i = 0; i < s.rows(); ++i) {
      for (Eigen::Index j = 0; j < s.cols(); ++j) {
        if (sees(i, j)) p(i, j) = std::exp(s(i, j) - row_lse(i));
      }
    }
    return p;
  }

  static Matrix product(const Matrix& a, const Matrix& b) {
    return (a.matrix() * b.matrix().transpose()).array();
  }
  static Matrix times(const Matrix& a, const Matrix& b) {
    return (a.matrix() * b.matrix()).array();
  }
  std::int64_t place(std::int64_t length, std::int64_t i) const {
    return (row_ * length + i) * sizes_.features() + head_ * sizes_.width;
  }
  std::int64_t lse_place(std::int64_t i) const {
    return (row_ * sizes_.heads + head_) * sizes_.queries + i;
  }
  double row_lse(std::int64_t i) const { return expected_.at("lse").at(lse_place(i)); }

  Matrix slice(const Tensor& x) const {
    Matrix values(x.shape()[1], sizes_.width);
    for (Eigen::Index i = 0; i < values.rows(); ++i) {
      for (Eigen::Index c = 0; c < values.cols(); ++c) {
        values(i, c) = x.at(place(values.rows(), i) + c);
      }
    }
    return values;
  }
  void store(Tensor& x, const Matrix& values) const {
    for (Eigen::Index i = 0; i < values.rows(); ++i) {
      for (Eigen::Index c = 0; c < values.cols(); ++c) {
        x.as<double>()[std::size_t(place(values.rows(), i) + c)] =
            kSecondOrder * values(i, c) + kSmallest;
      }
    }
  }
  bool sees(std::int64_t i, std::int64_t j) const {
    if (step_.attrs.causal && j > i + sizes_.diagonal()) return false;
    return step_.key_mask.shape().rank() == 0 || step_.key_mask.at(row_ * sizes_.keys + j) != 0;
  }
  double row_range(const Matrix& s, std::int64_t i) const {
    double low = INFINITY, high = -INFINITY;
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      if (sees(i, j)) low = std::min(low, s(i, j)), high = std::max(high, s(i, j));
    }
    return high > low ? high - low : 0;
  }
  Matrix keeps() const {
    const AttentionAttrs& attrs = step_.attrs;
    Matrix keep = Matrix::Ones(sizes_.queries, sizes_.keys);
    if (attrs.p == 0) return keep;
    const Philox random(std::uint64_t(attrs.seed), stream_of("attention"),
                        std::uint32_t(step_.step));
    const auto row = std::uint32_t(step_.first_row + row_);
    for (Eigen::Index i = 0; i < keep.rows(); ++i) {
      for (Eigen::Index j = 0; j < keep.cols(); ++j) {
        const std::uint32_t bits =
            attention_bits(random, row, std::uint64_t(head_), std::uint64_t(i), std::uint64_t(j));
        keep(i, j) = (bits >> 8) * 0x1p-24 >= attrs.p ? 1 / (1 - attrs.p) : 0;
      }
    }
    return keep;
  }

  const AttentionStep& step_;
  const Results& expected_;
  AttentionSizes sizes_;
  std::int64_t row_, head_;
  double scale_;
  Matrix q_, k_, v_, y_, dy_, keep_;
};

}  // namespace

Results attention_bounds(const AttentionStep& step, const Results& expected) {
  Results bounds;
  for (const auto& [name, value] : expected) bounds[name] = Tensor(DType::kF64, value.shape());
  for (std::int64_t row = 0; row < step.q.shape()[0]; ++row) {
    for (std::int64_t head = 0; head < step.attrs.heads; ++head) {
      Head(step, expected, row, head).fill(bounds);
    }
  }
  return bounds;
}

}  // namespace keel::test
