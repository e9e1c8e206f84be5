// Contiguous text in lanes: every place of a batch reads on, step by step, in a text of its own.
#pragma once

#include "frontend/data/batch_sampler.h"

namespace keel::data {

// The treatment of the last segment of the lanes where it is shorter than the others.
enum class ShortSegment {
  kUse,   // it is a batch with a shape of its own
  kDrop,  // training leaves it out
};
constexpr auto choice_words(ShortSegment) {
  return std::to_array<std::string_view>({"use", "drop"});
}

struct LaneOptions {
  std::int64_t lanes = 1;    // places of a batch
  std::int64_t length = 64;  // tokens of a segment
  ShortSegment last = ShortSegment::kUse;
  // Whether all lanes have the same length, as training has them; otherwise nothing is left out.
  bool equal = false;
  // How many whole segments of a single lane form a batch, where segments do not depend on each
  // other. 0: a batch has one segment of each lane.
  std::int64_t together = 0;
};

// The cut of a text of n tokens. Each token but the first is predicted from those before it, which
// makes n - 1 predictions. Lane b predicts `size` consecutive ones of them, after those of lane
// b - 1, and has as many inputs, the tokens one place before its targets:
//   equal      size = floor((n - 1) / lanes); the (n - 1) mod lanes last predictions are left out
//   otherwise  the first (n - 1) mod lanes lanes predict one more, and none is left out
// A step takes the next `length` tokens of every lane. The number of a row is
// lane * segments + segment.
class LaneCut {
 public:
  // Throws Error{kUsage} for lanes or a length below 1, and for a text that has less than one
  // prediction for every lane or, where short segments are dropped, less than one whole segment.
  LaneCut(std::int64_t tokens, const LaneOptions& options);

  // Some consecutive predictions: token first + i, from i = 0 on, is the input of the prediction of
  // token first + i + 1.
  struct Piece {
    std::int64_t first = 0, count = 0;
  };
  Piece piece(std::int64_t row) const;
  // Whether a row is the first of its lane, and does not go on from another.
  bool begins(std::int64_t row) const { return row % segments_ == 0; }

  std::int64_t lanes() const { return options_.lanes; }
  std::int64_t together() const { return options_.together; }
  std::int64_t segments() const { return segments_; }
  std::int64_t rows() const { return options_.lanes * segments_; }
  // The length of the segments of a step: that of the longest one.
  std::int64_t length(std::int64_t segment) const;
  // Predictions that belong to no lane, and those of the short segment if it is dropped.
  std::int64_t rest() const { return options_.equal ? more_ : 0; }
  std::int64_t dropped() const;

 private:
  std::int64_t lane_size(std::int64_t lane) const {
    return size_ + (!options_.equal && lane < more_ ? 1 : 0);
  }
  bool drops() const { return options_.equal && options_.last == ShortSegment::kDrop; }

  LaneOptions options_;
  std::int64_t size_ = 0, more_ = 0;  // (n - 1) / lanes, and what remains
  std::int64_t segments_ = 0;
};

// Batch `step` of every epoch has segment `step` of all lanes: sizes {lanes, length}.
class LanePlan final : public BatchSampler {
 public:
  explicit LanePlan(const LaneCut& cut) : BatchSampler(cut.rows(), /*varies=*/false), cut_(cut) {}

  std::int64_t steps(std::uint32_t) override { return cut_.segments(); }
  std::vector<Sizes> shapes() const override;

 private:
  void plan(std::uint32_t epoch, Epoch& planned) const override;
  Sizes lengths_of(std::span<const std::int64_t> rows, std::uint32_t) const override;
  std::int64_t capacity(std::int64_t count, const Sizes&) const override { return count; }

  LaneCut cut_;
};

// Batches of up to `together` whole segments of a single lane, then one of the short segment at its
// end, if it has one: sizes {segments, length}.
class SegmentPlan final : public BatchSampler {
 public:
  explicit SegmentPlan(const LaneCut& cut)
      : BatchSampler(cut.rows(), /*varies=*/false), cut_(cut) {}

  std::vector<Sizes> shapes() const override;

 private:
  std::int64_t whole_segments() const;
  void plan(std::uint32_t epoch, Epoch& planned) const override;
  Sizes lengths_of(std::span<const std::int64_t> rows, std::uint32_t) const override;
  std::int64_t capacity(std::int64_t count, const Sizes&) const override { return count; }

  LaneCut cut_;
};

}  // namespace keel::data
