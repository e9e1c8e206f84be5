// The vectors of sentences.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/skip_thoughts/triples.h"

namespace keel::models {

// Asks the network for the vectors of sentences, batch by batch of like lengths. Sentences of any
// length are taken; one without words is its end alone.
class VectorDecoder final : public task::Decoder {
 public:
  explicit VectorDecoder(std::vector<Numbers> sentences);

  std::int64_t size() const override { return std::ssize(sentences_); }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  // Numbers with spaces between.
  std::vector<std::string> answers() const override;

  // When all is found: a vector of length 1 for each sentence, or zeros where it has no length.
  const std::vector<std::vector<float>>& vectors() const { return vectors_; }

 private:
  std::vector<Numbers> sentences_;
  std::vector<std::int64_t> order_;  // by length
  std::size_t begin_ = 0, end_ = 0;  // of the batch that was given last
  task::Batch batch_;
  std::vector<std::vector<float>> vectors_;
};

}  // namespace keel::models
