// A 28 x 28 sheet on which strokes are drawn with a round pen and soft edges.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace keel::data {

inline constexpr int kSheetSize = 28;
inline constexpr int kSheetPixels = kSheetSize * kSheetSize;

// In pixels; pixel (column, row) has its centre at x = column, y = row.
struct Point {
  double x = 0, y = 0;
};

struct PenPoint {
  Point at;
  double radius = 0;
};

class Sheet {
 public:
  Sheet() { depth_.fill(-kFar); }

  // The straight piece from a to b; the pen's radius changes linearly from one end to the other.
  void line(const PenPoint& a, const PenPoint& b);

  // Ink of a pixel in 0..1: 1/2 on the outline, falling to 0 over `softness` pixels across it.
  double ink(int pixel, double softness) const;

 private:
  static constexpr double kFar = 1e3;
  static constexpr double kReach = 1;  // pixels outside the pen that are still measured

  // The depth of a pixel inside the pen's trace; negative outside.
  std::array<double, kSheetPixels> depth_;
};

}  // namespace keel::data
