#include "models/skip_thoughts/triples.h"

#include <algorithm>
#include <functional>
#include <set>

#include "frontend/data/row_batches.h"
#include "frontend/data/token_batches.h"

namespace keel::models {
namespace {

// Lengths of sentences are rounded up to multiples of the first, those of neighbours, which differ
// within a batch, of the second: few shapes have to be compiled.
constexpr std::int64_t kLengthMultiple = 4, kNeighbourMultiple = 8;

std::size_t place_at(const task::Batch& batch, std::size_t t, std::int64_t place) {
  return t * std::size_t(batch.sizes[0]) + std::size_t(place);
}

// A neighbour to be said; `in` is the first of its three inputs.
void put_neighbour(task::Batch& batch, std::size_t in, std::int64_t place,
                   const Numbers& sentence) {
  const auto words = batch.values[in].as<std::int32_t>(),
             out = batch.values[in + 1].as<std::int32_t>();
  const auto mask = batch.values[in + 2].as<std::uint8_t>();
  for (std::size_t t = 0; t < sentence.size(); ++t) {
    const std::size_t at = place_at(batch, t, place);
    if (t > 0) words[at] = sentence[t - 1];
    out[at] = sentence[t];
    mask[at] = 1;
  }
}

}  // namespace

NumberedText number_text(const std::vector<Passage>& passages, const text::Dictionary& dictionary,
                         std::int64_t most_words) {
  NumberedText text;
  for (const Passage& passage : passages) {
    const std::int64_t first = std::ssize(text.sentences);
    for (const std::string& sentence : passage.sentences) {
      text.sentences.push_back(dictionary.encode(sentence));
    }
    const auto fits = [&](std::int64_t i) {
      return std::ssize(text.sentences[std::size_t(i)]) <= most_words + 1;
    };
    for (std::int64_t i = first + 1; i + 1 < std::ssize(text.sentences); ++i) {
      const bool is_row = fits(i - 1) && fits(i) && fits(i + 1);
      is_row ? text.rows.push_back(i) : void(++text.dropped);
    }
  }
  return text;
}

std::vector<task::Input> triple_inputs(const task::Sizes& sizes) {
  const Shape own{sizes.at(1), sizes.at(0)}, other{sizes.at(2), sizes.at(0)};
  constexpr double kPad = text::Dictionary::kPad;
  return {
      {"words", {DType::kI32, own}, kPad},          {"mask", {DType::kU8, own}},
      {"before_in", {DType::kI32, other}, kPad},    {"before_out", {DType::kI32, other}, kNoWord},
      {"before_mask", {DType::kU8, other}},         {"after_in", {DType::kI32, other}, kPad},
      {"after_out", {DType::kI32, other}, kNoWord}, {"after_mask", {DType::kU8, other}}};
}

void put_sentence(task::Batch& batch, std::int64_t place, const Numbers& sentence) {
  for (std::size_t t = 0; t < sentence.size(); ++t) {
    const std::size_t at = place_at(batch, t, place);
    batch.values[kWords].as<std::int32_t>()[at] = sentence[t];
    batch.values[kMask].as<std::uint8_t>()[at] = 1;
  }
}

task::Sizes TripleRows::lengths_of(std::int64_t row) const {
  const auto neighbour = std::max(std::ssize(sentence(row, -1)), std::ssize(sentence(row, 1)));
  return {data::bucket_of(std::ssize(sentence(row)), kLengthMultiple),
          data::bucket_of(neighbour, kNeighbourMultiple)};
}

// The neighbours of a batch are not known before it is drawn, so a sentence of any length may meet
// neighbours of every length up to the longest.
std::unique_ptr<data::BatchSampler> TripleRows::plan(const task::StreamOptions& options) const {
  std::set<std::int64_t, std::greater<>> lengths;
  std::int64_t longest = 0;
  for (std::int64_t row = 0; row < std::ssize(text_.rows); ++row) {
    const task::Sizes of_row = lengths_of(row);
    lengths.insert(of_row[0]);
    longest = std::max(longest, of_row[1]);
  }
  std::vector<std::int64_t> neighbours;
  for (; longest > 0; longest -= kNeighbourMultiple) neighbours.push_back(longest);
  return std::make_unique<data::RowBatches>(
      std::ssize(text_.rows),
      data::RowLengths{
          .order = [this](std::uint32_t, std::int64_t row) { return std::ssize(sentence(row)); },
          .padded = [this](std::uint32_t, std::int64_t row) { return lengths_of(row); },
          .all = {{lengths.begin(), lengths.end()}, neighbours}},
      data::RowBatchOptions{options.batch, options.shuffle});
}

void TripleRows::put(task::Batch& batch, const data::RowVisit& visit) const {
  put_sentence(batch, visit.place, sentence(visit.row));
  put_neighbour(batch, kBeforeIn, visit.place, sentence(visit.row, -1));
  put_neighbour(batch, kAfterIn, visit.place, sentence(visit.row, 1));
}

}  // namespace keel::models
