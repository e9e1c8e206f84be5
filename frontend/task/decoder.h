// A search for answers, in which a network is asked again and again.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "frontend/task/batch.h"

namespace keel::task {

// The sum and the count that a metric is formed of.
struct Ratio {
  double sum = 0, count = 0;
};

// One of several answers to the same question.
struct RankedAnswer {
  std::string text;
  double score = 0;            // answers are ranked by it: the larger, the better
  double log_probability = 0;  // the network's, of the answer as a whole
};

// All answers that a part of a shared search found to question `question`, the best first.
struct FoundAnswers {
  std::int64_t question = 0;
  std::vector<RankedAnswer> answers = {};
};

// A Decoder runs an iterative search, for instance for a sentence's tree, its translation or an
// answer. Each batch that it asks for depends on the network's predictions for earlier ones; the
// caller runs the network.
class Decoder {
 public:
  virtual ~Decoder() = default;

  // The number of answers that there will be.
  virtual std::int64_t size() const = 0;
  // The batch that the network has to run next, valid until the next call; null: all is found.
  virtual const Batch* next() = 0;
  // Takes the network's predictions for that batch: Outputs::predictions, by their names.
  virtual void take(const std::map<std::string, Tensor>& predictions) = 0;
  // After the search: the answers in words, in order.
  virtual std::vector<std::string> answers() const = 0;
  // Whether an answer is the content of a file, such as a picture, and not a line of text.
  virtual bool answers_are_files() const { return false; }
  // After the search: sums and counts of the metrics that no graph counts, by their names.
  virtual std::map<std::string, Ratio> ratios() const { return {}; }
  // After the search: up to `most` answers to each question, the best first, if the search has
  // ranked any; otherwise nothing.
  virtual std::vector<std::vector<RankedAnswer>> ranked(std::int64_t /*most*/) const { return {}; }
  // After the search: further facts about the answers, as names and texts for people.
  virtual std::vector<std::pair<std::string, std::string>> details() const { return {}; }

  // Several processes can share a search out. Before the first next(): from now on this decoder
  // looks for part `part` of `parts` of the answers; it finds the same bits as a search for all of
  // them. Returns false, and changes nothing, if the search cannot be divided.
  virtual bool take_part(std::int64_t /*part*/, std::int64_t /*parts*/) { return false; }
  // After the search of a part: what it found, and the taking of what another part has found. When
  // every part has been taken, the functions above give the answers of the whole.
  virtual std::vector<FoundAnswers> found() const { return {}; }
  virtual void take_found(const FoundAnswers& /*answers*/) {}
};

}  // namespace keel::task
