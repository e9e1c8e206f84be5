// Greedy parsing of many sentences at once, and how many arcs are right.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/task/batch.h"
#include "models/dependency_parser/numbered.h"

namespace keel::models {

// Whether a token counts as punctuation by its tag: `` '' , . : as Chen & Manning (2014) have it,
// and PUNCT, the coarse tag of Universal Dependencies.
bool is_punctuation(std::string_view tag);

// Takes the transition that the network finds most likely of those that are legal, of equal ones
// the first class, until every sentence has its tree. A batch holds one configuration each of up to
// `batch` sentences, the longest first; where a sentence ends the next one takes its place. Where
// there is nothing but SHIFT the network is not asked. A tree is thus the same whatever else is
// parsed, if the network treats the rows of a batch alike.
//
// Ratios, of tokens of the treebank's trees: "uas" of those with the right head, "las" of those
// with the right head and label, punctuation left out; "uas_punct" and "las_punct", of all. The
// answers are the sentences' lines with the heads and labels that were found, and all else as it is
// in the treebank.
class GreedyParser final : public task::Decoder {
 public:
  GreedyParser(std::shared_ptr<const NumberedTreebank> treebank, std::int64_t batch);

  std::int64_t size() const override { return std::ssize(parses_); }
  const task::Batch* next() override;
  // Throws Error{kDiverged} when a logit is not a number.
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override;
  std::map<std::string, task::Ratio> ratios() const override;

  // Of a sentence, by node, when all are parsed.
  struct Parse {
    std::vector<std::int32_t> heads, labels;
  };
  const Parse& parse(std::int64_t sentence) const {
    return parses_[static_cast<std::size_t>(sentence)];
  }

 private:
  // A place of the batch.
  struct Slot {
    std::int64_t sentence = -1;  // -1: none, there are no more
    Configuration configuration;
  };
  void begin_next(Slot& slot);
  void go_on(Slot& slot);

  std::shared_ptr<const NumberedTreebank> treebank_;
  std::vector<std::int64_t> order_;  // of sentences
  std::size_t begun_ = 0;            // of them
  std::vector<Parse> parses_;
  std::vector<Slot> slots_;
  task::Batch batch_;
};

}  // namespace keel::models
