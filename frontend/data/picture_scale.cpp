#include "frontend/data/picture_scale.h"

#include <algorithm>
#include <cmath>

namespace keel::data {
namespace {

// The pixels [first, first + weights.size()) of a line that one new pixel covers, each as a share.
struct Cover {
  std::int64_t first = 0;
  std::vector<double> weights = {};
};

// For a line of which `length` pixels from `begin` on become `side`.
std::vector<Cover> covers(std::int64_t begin, std::int64_t length, std::int64_t side) {
  std::vector<Cover> all;
  for (std::int64_t i = 0; i < side; ++i) {
    // In units of 1 / side of an old pixel, which keeps the borders whole numbers.
    const std::int64_t low = i * length, high = low + length;
    Cover cover{begin + low / side};
    for (std::int64_t p = low / side; p * side < high; ++p) {
      const std::int64_t part = std::min(high, (p + 1) * side) - std::max(low, p * side);
      cover.weights.push_back(double(part) / double(length));
    }
    all.push_back(std::move(cover));
  }
  return all;
}

double covered(const io::Picture& picture, const Cover& rows, const Cover& columns,
               std::int64_t colour) {
  double sum = 0;
  for (std::size_t i = 0; i < rows.weights.size(); ++i) {
    double line = 0;
    for (std::size_t j = 0; j < columns.weights.size(); ++j) {
      line += columns.weights[j] *
              picture.at(rows.first + std::int64_t(i), columns.first + std::int64_t(j), colour);
    }
    sum += rows.weights[i] * line;
  }
  return sum;
}

}  // namespace

std::vector<std::uint8_t> planes_of(const io::Picture& picture, std::int64_t side) {
  const std::int64_t square = std::min(picture.width, picture.height);
  const std::vector<Cover> rows = covers((picture.height - square) / 2, square, side);
  const std::vector<Cover> columns = covers((picture.width - square) / 2, square, side);
  std::vector<std::uint8_t> planes;
  for (std::int64_t colour = 0; colour < 3; ++colour) {
    for (const Cover& row : rows) {
      for (const Cover& column : columns) {
        planes.push_back(std::uint8_t(std::lround(covered(picture, row, column, colour))));
      }
    }
  }
  return planes;
}

std::vector<std::uint8_t> grey_of(const io::Picture& picture, std::int64_t side) {
  const std::vector<std::uint8_t> planes = planes_of(picture, side);
  const std::size_t size = planes.size() / 3;
  std::vector<std::uint8_t> grey;
  for (std::size_t i = 0; i < size; ++i) {
    const int sum = 19595 * planes[i] + 38470 * planes[size + i] + 7471 * planes[2 * size + i];
    grey.push_back(std::uint8_t((sum + (1 << 15)) >> 16));
  }
  return grey;
}

}  // namespace keel::data
