#include "models/handwriting/drawing.h"

#include <algorithm>

#include "frontend/io/markup.h"

namespace keel::models {
namespace {

constexpr double kHeight = 120;                // of the picture, in pixels
constexpr double kMargin = 0.08, kPen = 0.02;  // in parts of the drawing's height

struct Box {
  double left = 0, right = 0, low = 0, high = 0;

  void take(double x, double y) {
    left = std::min(left, x);
    right = std::max(right, x);
    low = std::min(low, y);
    high = std::max(high, y);
  }
};

}  // namespace

std::string handwriting_svg(std::span<const PenPoint> points, std::string_view title) {
  Box box;
  double x = 0, y = 0;
  for (const PenPoint& p : points) box.take(x += p.dx, y -= p.dy);  // y of a picture goes down
  const double height = std::max(box.high - box.low, 1e-6), margin = kMargin * height;
  const double scale = kHeight / (height + 2 * margin);
  const double width = (box.right - box.left + 2 * margin) * scale;
  std::string path;
  bool begins = true;
  x = y = 0;
  for (const PenPoint& p : points) {
    x += p.dx;
    y -= p.dy;
    const double px = (x - box.left + margin) * scale, py = (y - box.low + margin) * scale;
    // A line back to where the stroke begins makes a dot of a single point.
    const char* const dot = begins && p.lifts ? "h0" : "";
    path += fmt::format("{}{:.1f} {:.1f}{}", begins ? "M" : "L", px, py, dot);
    begins = p.lifts;
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.1f} {1:.1f}\"><title>{2}</title>"
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
             width, kHeight, io::escape_markup(title)) +
         fmt::format(
             "<path d=\"{}\" fill=\"none\" stroke=\"#1a1a4a\" stroke-width=\"{:.1f}\" "
             "stroke-linecap=\"round\" stroke-linejoin=\"round\"/></svg>",
             path, kPen * kHeight);
}

}  // namespace keel::models
