#include "models/skip_thoughts/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "frontend/data/token_batches.h"
#include "frontend/text/lines.h"

namespace keel::models {
namespace {

constexpr std::int64_t kRows = 64, kVectorMultiple = 4;

std::vector<float> unit_vector(std::span<const float> x) {
  double squares = 0;
  for (const float value : x) squares += double(value) * value;
  const double length = std::sqrt(squares), factor = length > 0 ? 1 / length : 0;
  std::vector<float> result;
  for (const float value : x) result.push_back(float(value * factor));
  return result;
}

}  // namespace

std::vector<task::Input> vector_inputs(std::string_view network, const task::Sizes& sizes,
                                       std::int64_t word_width) {
  if (network == kWordsNetwork) return {{"ids", {DType::kI32, {sizes.at(0)}}}};
  const std::int64_t rows = sizes.at(0), length = sizes.at(1);
  return {{"words", {DType::kI32, {length, rows}}},
          {"mask", {DType::kU8, {length, rows}}},
          {"other", {DType::kF32, {length, rows, word_width}}}};
}

VectorDecoder::VectorDecoder(SentenceWords sentences)
    : sentences_(std::move(sentences)),
      order_(sentences_.numbers.size()),
      vectors_(sentences_.numbers.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::stable_sort(
      order_, {}, [this](std::int64_t i) { return sentences_.numbers[std::size_t(i)].size(); });
}

const task::Batch* VectorDecoder::next() {
  begin_ = end_;
  if (begin_ == order_.size()) return nullptr;
  if (sentences_.other && !sentences_.other->is_fitted()) {
    ask_words();
    return &batch_;
  }
  const auto bucket_at = [this](std::size_t i) {
    return data::bucket_of(std::ssize(sentences_.numbers[std::size_t(order_[i])]), kVectorMultiple);
  };
  const std::int64_t bucket = bucket_at(begin_);
  while (end_ < order_.size() && std::int64_t(end_ - begin_) < kRows && bucket_at(end_) == bucket) {
    ++end_;
  }
  ask_sentences(bucket);
  return &batch_;
}

void VectorDecoder::ask_words() {
  const std::vector<std::int32_t>& ids = sentences_.other->shared();
  batch_ = {
      .sizes = {std::ssize(ids)}, .values = {}, .rows = {}, .items = 1, .network = kWordsNetwork};
  batch_.values.push_back(Tensor::of<std::int32_t>({std::ssize(ids)}, ids));
}

// The neighbours of a batch of the model's own network have one place each, with nothing in it.
void VectorDecoder::ask_sentences(std::int64_t length) {
  const task::Sizes own{kRows, length}, with_neighbours{kRows, length, 1};
  if (sentences_.other) {
    data::clear_batch(batch_, own, vector_inputs(kSentencesNetwork, own, sentences_.word_width));
    batch_.network = kSentencesNetwork;
  } else {
    data::clear_batch(batch_, with_neighbours, triple_inputs(with_neighbours));
  }
  batch_.items = 1;
  for (std::size_t i = begin_; i < end_; ++i) {
    const auto place = std::int64_t(i - begin_);
    put_sentence(batch_, place, sentences_.numbers[std::size_t(order_[i])]);
    if (sentences_.other) put_other_words(place, order_[i]);
    batch_.rows[i - begin_] = order_[i];
  }
}

// Where a word has a vector from elsewhere there is padding, whose own vector is 0.
void VectorDecoder::put_other_words(std::int64_t place, std::int64_t sentence) {
  const std::vector<std::string_view> words =
      text::words_of(sentences_.texts[std::size_t(sentence)]);
  const Numbers& numbers = sentences_.numbers[std::size_t(sentence)];
  const auto width = std::size_t(sentences_.word_width);
  for (std::size_t t = 0; t < words.size(); ++t) {
    if (numbers[t] != text::Dictionary::kUnk) continue;
    ++unknown_;
    const std::span<const float> vector = sentences_.other->find(words[t]);
    if (vector.empty()) continue;
    ++mapped_;
    const std::size_t at = t * std::size_t(kRows) + std::size_t(place);
    batch_.values[kWords].as<std::int32_t>()[at] = text::Dictionary::kPad;
    std::ranges::copy(vector, batch_.values.back().as<float>().subspan(at * width, width).begin());
  }
}

void VectorDecoder::take(const std::map<std::string, Tensor>& predictions) {
  if (begin_ == end_) return sentences_.other->fit(predictions.at("words").as<float>());
  const Tensor& all = predictions.at("vector");
  const auto width = std::size_t(all.shape()[1]);
  const std::span<const float> values = all.as<float>();
  for (std::size_t i = begin_; i < end_; ++i) {
    vectors_[std::size_t(order_[i])] = unit_vector(values.subspan((i - begin_) * width, width));
  }
}

std::vector<std::pair<std::string, std::string>> VectorDecoder::details() const {
  if (!sentences_.other) return {};
  return {{"unknown words", fmt::format("{}, of which {} have vectors by the {} words that the "
                                        "file shares",
                                        unknown_, mapped_, sentences_.other->shared().size())}};
}

std::vector<std::string> VectorDecoder::answers() const {
  std::vector<std::string> answers;
  for (const std::vector<float>& vector : vectors_) {
    answers.push_back(fmt::format("{:.6g}", fmt::join(vector, " ")));
  }
  return answers;
}

}  // namespace keel::models
