// Bounds of column statistics and of their gradient sums: keel's promise for the norms that are
// made of them (docs/numerics.md), and bounds of merging, which is done in double.
#include <algorithm>
#include <cmath>

#include "frontend/compare/bounds/running_error.h"
#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"
#include "src/ops/norm/sizes.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

constexpr double kOfStatistics = kForwardBound * 2 * kEps, kOfSums = kBackwardBound * 2 * kEps;
constexpr double kDoubleEps = 0x1p-53;  // half the distance from 1 to the next double

// Sums (kinds, channels), an input or an output.
struct KindRows {
  std::span<const double> values;
  std::size_t channels;

  KindRows(const Tensor& t) : values(t.as<double>()), channels(std::size_t(t.shape().back())) {}
  double at(int row, std::size_t c) const { return values[std::size_t(row) * channels + c]; }
};
double& bound_at(Bounds& bounds, int row, std::size_t c) {
  const auto channels = std::size_t(bounds[0].shape().back());
  return bounds[0].as<double>()[std::size_t(row) * channels + c];
}

// The mean is off by what the sum of deviations is, and by the roundings of K doubles; squares are
// of one sign.
void column_moments(const ComparedNode& n, Bounds& bounds) {
  using Row = MomentRow;
  const KindRows of(n.outputs[0]);
  for (std::size_t c = 0; c < of.channels; ++c) {
    const double count = of.at(Row::kCount, c), squares = of.at(Row::kSquares, c);
    const double deviation = std::sqrt(squares / std::max(count, 1.0));
    const double size = std::abs(of.at(Row::kMean, c)) + deviation;
    bound_at(bounds, Row::kMean, c) =
        kOfStatistics * deviation + (count + 2) * kDoubleEps * size + kTiny;
    bound_at(bounds, Row::kSquares, c) = 2 * kOfStatistics * squares + kTiny;
  }
}

void column_squares(const ComparedNode& n, Bounds& bounds) {
  const KindRows of(n.outputs[0]);
  for (int row = SquareRow::kSquares; row < int(n.outputs[0].shape()[0]); ++row) {
    for (std::size_t c = 0; c < of.channels; ++c) {
      bound_at(bounds, row, c) = 2 * kOfStatistics * of.at(row, c) + kTiny;
    }
  }
}

// Shard after shard, each step by a few roundings of doubles: of the mean relative to the largest
// mean M, of the squares relative to themselves, and by what an error of a mean does to d^2.
void merge_moments(const ComparedNode& n, Bounds& bounds) {
  using Row = MomentRow;
  const KindRows parts(n.input(0)), of(n.outputs[0]);
  const auto shards = double(n.input(0).shape()[0]);
  for (std::size_t c = 0; c < of.channels; ++c) {
    double largest = 0;
    for (int shard = 0; shard < int(shards); ++shard) {
      largest = std::max(largest, std::abs(parts.at(shard * Row::kRows + Row::kMean, c)));
    }
    const double of_mean = 7 * shards * kDoubleEps * largest, count = of.at(Row::kCount, c);
    bound_at(bounds, Row::kCount, c) = shards * kDoubleEps * count;
    bound_at(bounds, Row::kAll, c) = shards * kDoubleEps * of.at(Row::kAll, c);
    bound_at(bounds, Row::kMean, c) = of_mean + kTiny;
    bound_at(bounds, Row::kSquares, c) = (4 * shards + 8) * kDoubleEps * of.at(Row::kSquares, c) +
                                         4 * largest * of_mean * count + kTiny;
  }
}

void merge_sums(const ComparedNode& n, Bounds& bounds) {
  const auto parts = n.in(0);
  const auto bound = bounds[0].as<double>();
  const double shards = double(n.input(0).shape()[0]);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bound[i % bound.size()] += shards * kDoubleEps * std::abs(parts[i]);
  }
  for (double& b : bound) b += kTiny;
}

// The elements of x and dy one after the other, with their channel and whether they are kept.
template <class Body>
void for_elements(const ComparedNode& n, int dy, int mask, const Body& body) {
  const Shape& shape = n.input(NormInput::kX).shape();
  const ColumnSizes sizes = column_sizes(shape);
  for (std::size_t e = 0; e < n.in(dy).size(); ++e) {
    const std::size_t c = e / std::size_t(sizes.inner) % std::size_t(sizes.channels);
    const std::size_t row = e / std::size_t(sizes.inner * sizes.channels);
    const bool is_kept = !n.has(mask) || n.input(mask).as<std::uint8_t>()[row] != 0;
    body(n.in(NormInput::kX)[e], std::abs(n.in(dy)[e]), c, is_kept);
  }
}

// On the sizes of the terms: an xhat that a mean was subtracted for is off by eps of 1.
void centred_sums(const ComparedNode& n, Bounds& bounds) {
  using In = CentredSumsInput;
  using Row = CentredSumRow;
  const bool has_padding = n.outputs[0].shape()[0] == Row::kRows;
  for_elements(n, In::kDy, In::kMask, [&](double x, double dy, std::size_t c, bool is_kept) {
    const double xhat = std::max(1.0, std::abs((x - n.in(In::kMean)[c]) * n.in(In::kRstd)[c]));
    if (is_kept) {
      bound_at(bounds, Row::kXhat, c) += kOfSums * xhat;
      bound_at(bounds, Row::kDy, c) += kOfSums * dy;
      bound_at(bounds, Row::kDyXhat, c) += kOfSums * dy * xhat;
    } else if (has_padding) {
      bound_at(bounds, Row::kPaddingDy, c) += kOfSums * dy;
    }
  });
}

void uncentred_sums(const ComparedNode& n, Bounds& bounds) {
  using In = UncentredSumsInput;
  using Row = UncentredSumRow;
  const bool has_all = n.outputs[0].shape()[0] == Row::kRows;
  for_elements(n, In::kDy, In::kMask, [&](double x, double dy, std::size_t c, bool is_kept) {
    const double term = kOfSums * dy * std::abs(x * n.in(In::kRstd)[c]) + kTiny;
    if (is_kept) {
      bound_at(bounds, Row::kDy, c) += kOfSums * dy;
      bound_at(bounds, Row::kDyXhat, c) += term;
    }
    if (has_all) bound_at(bounds, Row::kAllDyXhat, c) += term;
  });
}

}  // namespace

void add_column_rules(BoundRules& rules) {
  rules["column_moments"] = column_moments;
  rules["column_squares"] = column_squares;
  rules["merge_moments"] = merge_moments;
  rules["merge_sums"] = merge_sums;
  rules["centred_gradient_sums"] = centred_sums;
  rules["uncentred_gradient_sums"] = uncentred_sums;
}

}  // namespace keel::compare
