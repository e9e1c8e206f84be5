#include "frontend/data/lane_rows.h"

#include <algorithm>

#include "src/core/error.h"

namespace keel::data {
namespace {

constexpr double kNoTarget = -1;

// The tokens that training on a text leaves out.
SplitNotes notes_of(const TokenText& text, const LaneCut& cut) {
  SplitNotes notes{text.source, text.skipped};
  if (const std::int64_t rest = cut.rest(); rest > 0) {
    notes.skipped.push_back({rest, "too few to fill the lanes of the batch", "tokens"});
  }
  if (const std::int64_t dropped = cut.dropped(); dropped > 0) {
    notes.skipped.push_back({dropped, "short segments at the ends of the lanes", "tokens"});
  }
  return notes;
}

}  // namespace

std::vector<Input> lane_inputs(const Sizes& sizes) {
  const Shape tokens{sizes.at(0), sizes.at(1)};
  return {{"input", {DType::kI32, tokens}},
          {"target", {DType::kI32, tokens}, kNoTarget},
          {"begins", {DType::kU8, {sizes[0]}}, 1}};
}

LaneRows::LaneRows(std::shared_ptr<const TokenText> text, const LaneOptions& options)
    : Dataset(notes_of(*text, LaneCut(std::ssize(text->tokens), options))),
      text_(std::move(text)),
      cut_(std::ssize(text_->tokens), options) {}

void LaneRows::put(Batch& batch, const RowVisit& visit) const {
  const LaneCut::Piece piece = cut_.piece(visit.row);
  const std::span<const std::int32_t> tokens = text_->tokens;
  const auto place = std::size_t(visit.place), count = std::size_t(piece.count);
  const std::size_t to = place * std::size_t(batch.sizes[1]);
  const auto copy = [&](LaneValue::Place value, std::int64_t first) {
    std::ranges::copy(tokens.subspan(std::size_t(first), count),
                      batch.values[value].as<std::int32_t>().subspan(to).begin());
  };
  copy(LaneValue::kInput, piece.first);
  copy(LaneValue::kTarget, piece.first + 1);
  batch.values[LaneValue::kBegins].as<std::uint8_t>()[place] = cut_.begins(visit.row) ? 1 : 0;
}

const std::shared_ptr<const TokenText>& LaneSplits::text(Split split) const {
  std::shared_ptr<const TokenText>& text = texts_[std::size_t(split)];
  if (!text) text = std::make_shared<const TokenText>(make_(split));
  return text;
}

std::unique_ptr<Stream> LaneSplits::stream(Split split, const StreamOptions& options) const {
  const std::shared_ptr<const TokenText>& text = this->text(split);
  LaneOptions lanes{options.batch, settings_.length, settings_.last, /*equal=*/true};
  if (!options.shuffle) {
    const std::int64_t scored = std::max<std::int64_t>(1, std::ssize(text->tokens) - 1);
    const std::int64_t most = scored < settings_.evaluation_length ? 1 : scored;
    lanes = {.lanes = std::min(settings_.evaluation_lanes, most),
             .length = settings_.evaluation_length,
             .together = settings_.evaluation_together};
  }
  return stream_of_rows(std::make_shared<const LaneRows>(text, lanes), options);
}

}  // namespace keel::data
