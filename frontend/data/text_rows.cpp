#include "frontend/data/text_rows.h"

#include <algorithm>

#include "frontend/data/token_batches.h"
#include "frontend/text/vocabulary.h"
#include "src/core/error.h"

namespace keel::data {
namespace {

using text::Vocabulary;

constexpr std::int32_t kNoLabel = -1;
enum Value : std::size_t { kTokens, kMask, kLabel };

}  // namespace

std::vector<Input> text_inputs(const Sizes& sizes) {
  const Shape words{sizes.at(0), sizes.at(1)};
  return {{"tokens", {DType::kI32, words}, Vocabulary::kPad},
          {"mask", {DType::kU8, words}},
          {"label", {DType::kI32, {sizes.at(0)}}, kNoLabel}};
}

void TextRows::add(std::span<const std::int32_t> tokens, std::int32_t label) {
  check(label > kNoLabel, ErrorKind::kUsage, "[text_rows] label: expected 0 or more, got {}",
        label);
  for (std::int32_t token : tokens) {
    check(token > Vocabulary::kPad, ErrorKind::kUsage,
          "[text_rows] token: expected 1 or more, got {}", token);
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  if (tokens.empty()) tokens_.push_back(Vocabulary::kUnk);
  begins_.push_back(tokens_.size());
  labels_.push_back(label);
}

std::span<const std::int32_t> TextRows::tokens(std::int64_t row) const {
  const auto at = static_cast<std::size_t>(row);
  return std::span(tokens_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
}

std::unique_ptr<BatchSampler> TextRows::plan(const StreamOptions& options) const {
  std::vector<std::int64_t> lengths;
  for (std::int64_t row = 0; row < size(); ++row) lengths.push_back(std::ssize(tokens(row)));
  return std::make_unique<TokenBatches>(std::move(lengths),
                                        TokenBatchOptions{.max_tokens = options.batch,
                                                          .sorted = !options.shuffle.has_value(),
                                                          .seed = options.shuffle.value_or(0)});
}

std::vector<Input> TextRows::inputs(const Sizes& sizes) const { return text_inputs(sizes); }

void TextRows::put(Batch& batch, const RowVisit& visit) const {
  const std::span<const std::int32_t> tokens = this->tokens(visit.row);
  const auto place = static_cast<std::size_t>(visit.place);
  const std::size_t first = place * static_cast<std::size_t>(batch.sizes[1]);
  std::ranges::copy(tokens, batch.values[kTokens].as<std::int32_t>().subspan(first).begin());
  std::ranges::fill(batch.values[kMask].as<std::uint8_t>().subspan(first, tokens.size()),
                    std::uint8_t{1});
  batch.values[kLabel].as<std::int32_t>()[place] = label(visit.row);
}

}  // namespace keel::data
