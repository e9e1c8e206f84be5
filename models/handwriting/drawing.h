// Handwriting as a picture.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "models/handwriting/strokes.h"

namespace keel::models {

// An SVG of the strokes of the pen, with `title` as its title; it is empty if there are no points.
// Strokes of a single point are dots.
std::string handwriting_svg(std::span<const PenPoint> points, std::string_view title);

}  // namespace keel::models
