// Distances from pixels to pen strokes.
#include "frontend/data/ink.h"

#include <algorithm>
#include <cmath>

namespace keel::data {

void Sheet::line(const PenPoint& a, const PenPoint& b) {
  const double dx = b.at.x - a.at.x, dy = b.at.y - a.at.y;
  const double inverse_length2 = 1 / std::max(dx * dx + dy * dy, 1e-12);
  const double reach = std::max(a.radius, b.radius) + kReach;
  const auto first = [&](double p, double q) {
    return static_cast<int>(std::clamp(std::ceil(std::min(p, q) - reach), 0.0, double(kSheetSize)));
  };
  const auto last = [&](double p, double q) {
    return static_cast<int>(
        std::clamp(std::floor(std::max(p, q) + reach) + 1, 0.0, double(kSheetSize)));
  };
  const int x0 = first(a.at.x, b.at.x), x1 = last(a.at.x, b.at.x);
  const int y1 = last(a.at.y, b.at.y);
  for (int y = first(a.at.y, b.at.y); y < y1; ++y) {
    double* row = depth_.data() + y * kSheetSize;
    for (int x = x0; x < x1; ++x) {
      const double px = x - a.at.x, py = y - a.at.y;
      const double t = std::clamp((px * dx + py * dy) * inverse_length2, 0.0, 1.0);
      const double ex = px - t * dx, ey = py - t * dy;
      const double radius = a.radius + t * (b.radius - a.radius);
      row[x] = std::max(row[x], radius - std::sqrt(ex * ex + ey * ey));
    }
  }
}

double Sheet::ink(int pixel, double softness) const {
  return std::clamp(0.5 + depth_[static_cast<std::size_t>(pixel)] / softness, 0.0, 1.0);
}

}  // namespace keel::data
