// Handwriting as a picture.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "models/handwriting/strokes.h"

namespace keel::models {

// An SVG of what the pen has drawn, with `title` as its title; of no points an empty one. Strokes
// of a single point are dots.
std::string handwriting_svg(std::span<const PenPoint> points, std::string_view title);

}  // namespace keel::models
