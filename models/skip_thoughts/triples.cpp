#include "models/skip_thoughts/triples.h"

#include <algorithm>
#include <set>
#include <utility>

#include "src/core/error.h"

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
  return {{"words", {DType::kI32, own}},        {"mask", {DType::kU8, own}},
          {"before_in", {DType::kI32, other}},  {"before_out", {DType::kI32, other}},
          {"before_mask", {DType::kU8, other}}, {"after_in", {DType::kI32, other}},
          {"after_out", {DType::kI32, other}},  {"after_mask", {DType::kU8, other}}};
}

void clear_triples(task::Batch& batch, const task::Sizes& sizes) {
  if (batch.sizes != sizes) {
    batch.sizes = sizes;
    batch.values.clear();
    for (const task::Input& input : triple_inputs(sizes)) batch.values.emplace_back(input.type);
  }
  for (const std::size_t in : {kWords, kBeforeIn, kAfterIn}) {
    std::ranges::fill(batch.values[in].as<std::int32_t>(), text::Dictionary::kPad);
  }
  for (const std::size_t out : {kBeforeOut, kAfterOut}) {
    std::ranges::fill(batch.values[out].as<std::int32_t>(), kNoWord);
  }
  for (const std::size_t mask : {kMask, kBeforeMask, kAfterMask}) {
    std::ranges::fill(batch.values[mask].as<std::uint8_t>(), std::uint8_t{0});
  }
}

void put_sentence(task::Batch& batch, std::int64_t place, const Numbers& sentence) {
  for (std::size_t t = 0; t < sentence.size(); ++t) {
    const std::size_t at = place_at(batch, t, place);
    batch.values[kWords].as<std::int32_t>()[at] = sentence[t];
    batch.values[kMask].as<std::uint8_t>()[at] = 1;
  }
}

TripleStream::TripleStream(data::StreamNotes notes, std::shared_ptr<const NumberedText> text,
                           const TripleOptions& options)
    : notes_(std::move(notes)),
      text_(std::move(text)),
      batches_(std::ssize(text_->rows),
               [this](std::uint32_t, std::int64_t row) { return std::ssize(sentence(row)); },
               {options.batch, options.shuffle, 0}) {}

double TripleStream::items(std::uint32_t epoch, std::int64_t step) {
  std::int64_t words = 0;
  for (const std::int64_t row : batches_.at(epoch, step)) {
    words += std::ssize(sentence(row, -1)) + std::ssize(sentence(row, 1));
  }
  return double(words);
}

std::vector<task::LeftOut> TripleStream::left_out() const {
  std::vector<task::LeftOut> left = notes_.left_out;
  const std::int64_t rest = batches_.left_out();
  if (rest > 0) left.push_back({rest, "do not fill a batch, other ones in every epoch"});
  return left;
}

// Of a batch that may come nobody knows the neighbours before it is drawn, so that a sentence of
// any length may meet the longest neighbour of all.
std::vector<task::Sizes> TripleStream::shapes() const {
  std::set<std::int64_t, std::greater<>> lengths;
  std::int64_t longest = 1;
  for (std::int64_t row = 0; row < rows(); ++row) {
    lengths.insert(data::bucket_of(std::ssize(sentence(row)), kLengthMultiple));
    longest = std::max(longest, neighbour_length(row));
  }
  std::vector<task::Sizes> shapes;
  for (std::int64_t other = data::bucket_of(longest, kNeighbourMultiple); other > 0;
       other -= kNeighbourMultiple) {
    for (const std::int64_t length : lengths) {
      shapes.push_back({batches_.capacity(), length, other});
    }
  }
  return shapes;
}

const task::Batch& TripleStream::at(std::uint32_t epoch, std::int64_t step) {
  return make(batches_.at(epoch, step), batches_.capacity());
}

const task::Batch& TripleStream::pick(std::span<const std::int64_t> rows) {
  for (const std::int64_t row : rows) {
    check(row >= 0 && row < this->rows(), ErrorKind::kUsage,
          "[skip_thoughts] row: expected 0 to {}, got {}", this->rows() - 1, row);
  }
  return make(rows, std::ssize(rows));
}

const task::Batch& TripleStream::make(std::span<const std::int64_t> rows, std::int64_t capacity) {
  std::int64_t length = 1, other = 1;
  for (const std::int64_t row : rows) {
    length = std::max(length, std::ssize(sentence(row)));
    other = std::max(other, neighbour_length(row));
  }
  clear_triples(batch_, {capacity, data::bucket_of(length, kLengthMultiple),
                         data::bucket_of(other, kNeighbourMultiple)});
  batch_.items = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto place = std::int64_t(i);
    put_sentence(batch_, place, sentence(rows[i]));
    put_neighbour(batch_, kBeforeIn, place, sentence(rows[i], -1));
    put_neighbour(batch_, kAfterIn, place, sentence(rows[i], 1));
    batch_.items += double(sentence(rows[i], -1).size() + sentence(rows[i], 1).size());
  }
  batch_.rows.assign(rows.begin(), rows.end());
  batch_.rows.resize(std::size_t(capacity), -1);
  return batch_;
}

}  // namespace keel::models
