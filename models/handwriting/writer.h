// Handwriting of texts, point by point: each point is drawn from the network's prediction after the
// points before (Graves 2013, section 5.4).
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

// The random numbers of a point: one below 1 for each of its choices, and two normal ones.
struct PointDraw {
  double component, pen, normal1, normal2;
};
// The next point, its offsets still normalized. `density` is as in mixture_density: 1 + 6 M.
PenPoint draw_point(std::span<const float> density, const PointDraw& draw, double bias);

// Whether the window of a row has passed the end of its text: whether at u = length + 1 it would be
// greater than anywhere on the text (Graves' heuristic).
bool is_past_end(std::span<const float> components, std::span<const float> kappa,
                 std::int64_t length);

// The answer to each text is an SVG. Each text is written by itself, in batches of one row and one
// point; the state goes from each batch to the next. The numbers drawn for its point t are a pure
// function of (seed, the text's place among the texts, t). An empty text has an empty answer.
class HandWriter final : public task::Decoder {
 public:
  // Throws Error{kBadInput} for a text with characters outside the alphabet.
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
