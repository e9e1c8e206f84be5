// Texts written by hand, point by point: each is drawn from what the network says of the points
// before (Graves 2013, section 5.4).
#pragma once

#include <string>
#include <vector>

#include "frontend/task/batch.h"
#include "models/handwriting/data.h"
#include "models/handwriting/network.h"

namespace keel::models {

struct WriterOptions {
  double bias = 0;           // sigma becomes sigma / exp(bias), pi^ becomes (1 + bias) pi^
  std::int64_t longest = 0;  // points at most; 0: 120 a character, and 100
  std::uint64_t seed = 0;
};

// One number below 1 of each choice that a point takes, and two normal ones.
struct PointDraw {
  double component, pen, normal1, normal2;
};
// The next point, offsets still normalized, of what mixture_density takes: 1 + 6 M numbers.
PenPoint draw_point(std::span<const float> density, const PointDraw& draw, double bias);

// Whether the window of a row has gone past its text: whether at u = length + 1 it would be greater
// than anywhere on the text (Graves' heuristic).
bool is_past_end(std::span<const float> hats, std::span<const float> kappa, std::int64_t length);

// The answer to each text is an SVG. A text is written by itself, in batches of one row and one
// point, the state going from each to the next; the numbers drawn for its point t are a pure
// function of (seed, the text's place among the texts, t). An empty text has an empty answer.
class HandWriter final : public task::Decoder {
 public:
  // Throws Error{kBadInput} for a text that the alphabet has no numbers for.
  HandWriter(std::vector<std::string> texts, const HandwritingFacts& facts,
             const HandwritingSizes& sizes, const WriterOptions& options);

  std::int64_t size() const override { return std::ssize(texts_); }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override;
  bool answers_are_files() const override { return true; }

  // The points of a text, in the units of the training data.
  const std::vector<PenPoint>& points(std::size_t text) const { return points_[text]; }

 private:
  void begin_text();

  std::vector<std::string> texts_;
  std::vector<std::vector<std::int32_t>> numbers_;
  std::vector<std::vector<PenPoint>> points_;
  HandwritingFacts facts_;
  HandwritingSizes sizes_;
  WriterOptions options_;
  std::size_t text_ = 0;  // the one that is being written
  bool has_begun_ = false;
  task::Batch batch_;
};

}  // namespace keel::models
