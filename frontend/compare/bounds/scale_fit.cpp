#include "frontend/compare/bounds/scale_fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "frontend/compare/bounds/bounds.h"

namespace keel::compare {
namespace {

constexpr double kSharedRoundings = 2;  // one constant, and the result's own
constexpr double kDeviations = 8;       // a chance of 3e-14 a slice

struct Fit {
  double products = 0, squares = 0, variance = 0;

  void add(double error, double expected, double deviation) {
    products += error * expected;
    squares += expected * expected;
    variance += deviation * deviation * expected * expected;
  }
  double of_allowed() const {
    if (!(squares > 0) || !std::isfinite(squares) || !std::isfinite(products)) return 0;
    if (!std::isfinite(variance)) return 0;
    const double allowed = kSharedRoundings * kEps + kDeviations * std::sqrt(variance) / squares;
    return std::abs(products) / squares / allowed;
  }
};

}  // namespace

double scale_fit(const Tensor& got, const Tensor& expected, const Tensor& deviation) {
  const Shape& shape = expected.shape();
  const auto strides = shape.strides();
  Fit whole;
  std::vector<std::vector<Fit>> slices;
  for (int axis = 0; shape.rank() > 1 && axis < shape.rank(); ++axis) {
    slices.emplace_back(std::size_t(shape[axis]));
  }
  for (std::int64_t e = 0; e < expected.elements(); ++e) {
    const double y = expected.at(e), error = got.at(e) - y, w = deviation.at(e);
    whole.add(error, y, w);
    for (std::size_t axis = 0; axis < slices.size(); ++axis) {
      slices[axis][std::size_t(e / strides[axis] % shape[int(axis)])].add(error, y, w);
    }
  }
  double largest = whole.of_allowed();
  for (const auto& of_axis : slices) {
    for (const Fit& fit : of_axis) largest = std::max(largest, fit.of_allowed());
  }
  return largest;
}

}  // namespace keel::compare
