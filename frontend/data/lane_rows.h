// Batches of contiguous text, for language models that carry what they remember from batch to
// batch.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "frontend/data/data_loader.h"
#include "frontend/data/lanes.h"

namespace keel::data {

// A text as the numbers of its tokens.
struct TokenText {
  std::string source;  // for people
  std::vector<std::int32_t> tokens;
  std::vector<Skipped> skipped = {};  // of training
};

// The values of a batch with the sizes {lanes, length}:
//   input   i32 (lanes, length)   tokens; 0 in padding
//   target  i32 (lanes, length)   the token after each of them; -1 in padding, which is not scored
//   begins  u8 (lanes)            1 in the first batch of an epoch: nothing is carried into it
std::vector<Input> lane_inputs(const Sizes& sizes);
struct LaneValue {
  enum Place : std::size_t { kInput, kTarget, kBegins };
};

// The segments of a text in lanes. The items of a row are its predictions. Padding occurs only in
// the last batch of unequal lanes, one token at the end of a lane.
class LaneRows final : public Dataset {
 public:
  // Throws as LaneCut.
  LaneRows(std::shared_ptr<const TokenText> text, const LaneOptions& options);

  // Ignores the options, since lanes are part of what a row is.
  std::unique_ptr<BatchSampler> plan(const StreamOptions&) const override {
    if (cut_.together() > 0) return std::make_unique<SegmentPlan>(cut_);
    return std::make_unique<LanePlan>(cut_);
  }
  std::vector<Input> inputs(const Sizes& sizes) const override { return lane_inputs(sizes); }
  void put(Batch& batch, const RowVisit& visit) const override;
  double items(std::int64_t row) const override { return double(cut_.piece(row).count); }

 private:
  std::shared_ptr<const TokenText> text_;
  LaneCut cut_;
};

// How training and evaluation cut a text.
struct LaneSettings {
  std::int64_t length = 64;  // of a segment in training, which has StreamOptions::batch lanes
  ShortSegment last = ShortSegment::kUse;
  std::int64_t evaluation_lanes = 10, evaluation_length = 64;
  std::int64_t evaluation_together = 0;  // LaneOptions::together of evaluation
};

// Splits of contiguous text. A shuffled stream is for training and has equal lanes; its order is
// the text's own in every epoch. One without a seed is for evaluation: it has the lanes and the
// length of the evaluation, whatever StreamOptions::batch is, and scores every token but the first.
// A text too short for so many lanes is evaluated in fewer, and one shorter than a segment in one.
class LaneSplits final : public Splits {
 public:
  using Make = std::function<TokenText(Split)>;
  LaneSplits(const LaneSettings& settings, Make make)
      : settings_(settings), make_(std::move(make)) {}

  // Throws as LaneCut and as `make`, which is called once for a split.
  std::unique_ptr<Stream> stream(Split split, const StreamOptions& options) const override;
  const std::shared_ptr<const TokenText>& text(Split split) const;

 private:
  LaneSettings settings_;
  Make make_;
  mutable std::array<std::shared_ptr<const TokenText>, 3> texts_;
};

}  // namespace keel::data
