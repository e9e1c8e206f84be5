#include "models/draw/sampler.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "frontend/io/png.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "models/draw/data.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

constexpr std::int64_t kMostSamples = 1000;
constexpr std::uint8_t kGap = 96;  // the grey between pictures

std::int64_t samples_of(const std::string& line, std::size_t number) {
  std::int64_t samples = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), samples);
  const bool is_number = error == std::errc() && end == line.data() + line.size();
  check(is_number && samples >= 1 && samples <= kMostSamples, ErrorKind::kBadInput,
        "[draw] {}: expected a number of samples, 1 to {}, got '{}'",
        text::place("standard input", std::int64_t(number)), kMostSamples, text::clipped(line, 40));
  return samples;
}

}  // namespace

DrawSampler::DrawSampler(std::span<const std::string> lines) {
  for (const std::string& line : lines) counts_.push_back(samples_of(line, counts_.size() + 1));
}

const task::Batch* DrawSampler::next() {
  if (std::ssize(answers_) == size()) return nullptr;
  const std::int64_t n = counts_[answers_.size()];
  batch_ = {.sizes = {n, 0}, .values = {}, .rows = {}, .items = double(n)};
  batch_.values.emplace_back(DType::kF32, Shape{n, 0, draw_columns()[0].row[1]});
  batch_.values.emplace_back(DType::kI32, Shape{n});
  for (std::int64_t i = 0; i < n; ++i) {
    batch_.rows.push_back(drawn_ + i);
    batch_.values[1].as<std::int32_t>()[std::size_t(i)] = std::int32_t(drawn_ + i);
  }
  return &batch_;
}

void DrawSampler::take(const std::map<std::string, Tensor>& predictions) {
  drawn_ += counts_[answers_.size()];
  answers_.push_back(canvases_png(predictions.at("canvases")));
}

std::string canvases_png(const Tensor& canvases) {
  const Shape& shape = canvases.shape();
  const std::int64_t glimpses = shape[0], n = shape[1], rows = shape[2], columns = shape[3];
  const std::int64_t width = glimpses * (columns + 1) - 1, height = n * (rows + 1) - 1;
  std::vector<std::uint8_t> pixels(std::size_t(width * height), kGap);
  for (std::int64_t e = 0; e < canvases.elements(); ++e) {
    const std::int64_t column = e % columns, row = e / columns % rows;
    const std::int64_t sample = e / (columns * rows) % n, glimpse = e / (columns * rows * n);
    const std::int64_t x = glimpse * (columns + 1) + column, y = sample * (rows + 1) + row;
    const double grey = std::round(255 * std::clamp(canvases.at(e), 0.0, 1.0));
    pixels[std::size_t(y * width + x)] = std::uint8_t(grey);
  }
  return io::png_of(pixels, width, height);
}

}  // namespace keel::models
