// Images that DRAW samples from the prior, as pictures of the canvas over time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "frontend/task/decoder.h"

namespace keel::models {

// A line is a number of samples, 1 to 1000. Its answer is a PNG file: a row for each sample, and in
// it the canvas after each glimpse, from left to right. The numbers of samples go on from line to
// line, and each sample is a pure function of its number.
class DrawSampler final : public task::Decoder {
 public:
  // Throws Error{kBadInput} for a line that is no such number.
  explicit DrawSampler(std::span<const std::string> lines);

  std::int64_t size() const override { return std::ssize(counts_); }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override { return answers_; }
  bool answers_are_files() const override { return true; }

 private:
  std::vector<std::int64_t> counts_;
  std::int64_t drawn_ = 0;  // samples of the lines before
  std::vector<std::string> answers_;
  task::Batch batch_;
};

// Canvases (glimpses, n, rows, columns), 0 black to 1 white, side by side, one pixel apart.
std::string canvases_png(const Tensor& canvases);

}  // namespace keel::models
