// The scale of the pen's offsets: it gives them mean 0 and standard deviation 1.
#pragma once

#include <string>
#include <string_view>

#include "models/handwriting/strokes.h"

namespace keel::models {

struct OffsetScale {
  double mean_x = 0, mean_y = 0, deviation_x = 1, deviation_y = 1;

  // The scale of all offsets of lines except the first. A deviation of 0 counts as 1.
  static OffsetScale of(const WrittenLines& lines);

  double normal_x(double dx) const { return (dx - mean_x) / deviation_x; }
  double normal_y(double dy) const { return (dy - mean_y) / deviation_y; }
  double dx(double normal) const { return normal * deviation_x + mean_x; }
  double dy(double normal) const { return normal * deviation_y + mean_y; }

  // The form of a checkpoint. parse() throws Error{kBadInput} for what text() cannot give.
  std::string text() const;
  static OffsetScale parse(std::string_view text);
};

}  // namespace keel::models
