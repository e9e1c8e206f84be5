// The vectors of sentences.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/task/decoder.h"
#include "models/skip_thoughts/expansion.h"
#include "models/skip_thoughts/triples.h"

namespace keel::models {

// Networks that the decoder asks for (task::Batch::network) when unknown words have vectors from
// elsewhere. "words" gives the vectors of words: input ids i32 (words), prediction "words" f32
// (words, word width). "sentences" gives those of sentences: inputs words and mask as in triples.h,
// and other f32 (length, rows, word width), which is added to the vectors of words and is 0 for the
// network's own; prediction "vector" f32 (rows, width).
inline constexpr const char *kWordsNetwork = "words", *kSentencesNetwork = "sentences";
// Sizes of "words" are {words}, those of "sentences" {rows, length}.
std::vector<task::Input> vector_inputs(std::string_view network, const task::Sizes& sizes,
                                       std::int64_t word_width);

// Sentences, and the facts known about those of their words that training did not have.
struct SentenceWords {
  std::vector<Numbers> numbers = {};
  std::vector<std::string> texts = {};  // what was numbered
  std::optional<Expansion> other = std::nullopt;
  std::int64_t word_width = 0;
};

// Asks the network for the vectors of sentences, in batches of similar lengths. Sentences may have
// any length; one without words consists only of its end.
class VectorDecoder final : public task::Decoder {
 public:
  explicit VectorDecoder(SentenceWords sentences);

  std::int64_t size() const override { return std::ssize(sentences_.numbers); }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  // Numbers with spaces between.
  std::vector<std::string> answers() const override;
  // The number of unknown words, and of those among them that the file knows.
  std::vector<std::pair<std::string, std::string>> details() const override;

  // After the search: a vector of length 1 for each sentence, or zeros if its length is 0.
  const std::vector<std::vector<float>>& vectors() const { return vectors_; }

 private:
  void ask_words();
  void ask_sentences(std::int64_t length);
  void put_other_words(std::int64_t place, std::int64_t sentence);

  SentenceWords sentences_;
  std::vector<std::int64_t> order_;  // by length
  std::size_t begin_ = 0, end_ = 0;  // of the batch that was given last
  task::Batch batch_;
  std::vector<std::vector<float>> vectors_;
  std::int64_t unknown_ = 0, mapped_ = 0;  // words of all sentences
};

}  // namespace keel::models
