#include "models/handwriting/scale.h"

#include <array>
#include <charconv>
#include <cmath>

#include "frontend/text/lines.h"
#include "src/core/error.h"

namespace keel::models {

OffsetScale OffsetScale::of(const WrittenLines& lines) {
  double count = 0, sum_x = 0, sum_y = 0, square_x = 0, square_y = 0;
  const auto each = [&](const auto& take) {
    for (const WrittenLine& line : lines) {
      for (std::size_t i = 1; i < line.points.size(); ++i) take(line.points[i]);
    }
  };
  each([&](const PenPoint& p) { count += 1, sum_x += p.dx, sum_y += p.dy; });
  if (count == 0) return {};
  const double mean_x = sum_x / count, mean_y = sum_y / count;
  each([&](const PenPoint& p) {
    square_x += (p.dx - mean_x) * (p.dx - mean_x);
    square_y += (p.dy - mean_y) * (p.dy - mean_y);
  });
  const auto deviation = [&](double squares) {
    return squares > 0 ? std::sqrt(squares / count) : 1;
  };
  return {mean_x, mean_y, deviation(square_x), deviation(square_y)};
}

std::string OffsetScale::text() const {
  return fmt::format("{} {} {} {}", mean_x, mean_y, deviation_x, deviation_y);
}

OffsetScale OffsetScale::parse(std::string_view text) {
  std::array<double, 4> numbers{};
  const std::vector<std::string_view> words = text::words_of(text);
  bool is_fine = words.size() == numbers.size();
  for (std::size_t i = 0; is_fine && i < numbers.size(); ++i) {
    const char* const end = words[i].data() + words[i].size();
    const auto [stop, error] = std::from_chars(words[i].data(), end, numbers[i]);
    is_fine = error == std::errc() && stop == end && std::isfinite(numbers[i]);
  }
  check(is_fine && numbers[2] > 0 && numbers[3] > 0, ErrorKind::kBadInput,
        "scale: expected two means and two deviations above 0, got '{}'", text);
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

}  // namespace keel::models
