#include "models/skip_thoughts/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "frontend/data/token_batches.h"

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

VectorDecoder::VectorDecoder(std::vector<Numbers> sentences)
    : sentences_(std::move(sentences)), order_(sentences_.size()), vectors_(sentences_.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::stable_sort(order_, {},
                           [this](std::int64_t i) { return sentences_[std::size_t(i)].size(); });
}

// The neighbours of such a batch have one place each, with nothing in it.
const task::Batch* VectorDecoder::next() {
  begin_ = end_;
  if (begin_ == order_.size()) return nullptr;
  const auto bucket_at = [this](std::size_t i) {
    return data::bucket_of(std::ssize(sentences_[std::size_t(order_[i])]), kVectorMultiple);
  };
  const std::int64_t bucket = bucket_at(begin_);
  while (end_ < order_.size() && std::int64_t(end_ - begin_) < kRows && bucket_at(end_) == bucket) {
    ++end_;
  }
  clear_triples(batch_, {kRows, bucket, 1});
  batch_.rows.assign(std::size_t(kRows), -1);
  batch_.items = 1;
  for (std::size_t i = begin_; i < end_; ++i) {
    put_sentence(batch_, std::int64_t(i - begin_), sentences_[std::size_t(order_[i])]);
    batch_.rows[i - begin_] = order_[i];
  }
  return &batch_;
}

void VectorDecoder::take(const std::map<std::string, Tensor>& predictions) {
  const Tensor& all = predictions.at("vector");
  const auto width = std::size_t(all.shape()[1]);
  const std::span<const float> values = all.as<float>();
  for (std::size_t i = begin_; i < end_; ++i) {
    vectors_[std::size_t(order_[i])] = unit_vector(values.subspan((i - begin_) * width, width));
  }
}

std::vector<std::string> VectorDecoder::answers() const {
  std::vector<std::string> answers;
  for (const std::vector<float>& vector : vectors_) {
    answers.push_back(fmt::format("{:.6g}", fmt::join(vector, " ")));
  }
  return answers;
}

}  // namespace keel::models
