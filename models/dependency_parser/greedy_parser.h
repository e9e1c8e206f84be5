// Greedy parsing of many sentences at once, and how many arcs are right.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/task/decoder.h"
#include "models/dependency_parser/numbered.h"

namespace keel::models {

// Whether a token is punctuation. If its coarse tag is a UPOS, one of the 17 of Universal
// Dependencies, that is PUNCT; otherwise its tag is one of `` '' , . : (Chen & Manning 2014) or
// PUNCT.
bool is_punctuation(std::string_view coarse_tag, std::string_view tag);

// At each step takes the legal transition that the network finds most likely (of equal ones the
// first class), until every sentence has its tree. A batch holds one configuration each of up to
// `batch` sentences, the longest first; when a sentence ends, the next one takes its place. If only
// SHIFT is legal, the network is not asked. If the network treats the rows of a batch alike, a tree
// is the same whatever else is parsed.
//
// Ratios over the tokens of the treebank's trees: "uas" counts those with the right head, "las"
// those with the right head and label, both without punctuation; "uas_punct" and "las_punct"
// include it. The answers are the sentences' lines with the heads and labels that were found
// (with_arcs).
class GreedyParser final : public task::Decoder {
 public:
  GreedyParser(std::shared_ptr<const NumberedTreebank> treebank, std::int64_t batch);

  std::int64_t size() const override { return std::ssize(parses_); }
  const task::Batch* next() override;
  // Throws Error{kDiverged} when a logit is not a number.
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override;
  std::map<std::string, task::Ratio> ratios() const override;
  // How many words "uas" and "las" leave out, and by which tags.
  std::vector<std::pair<std::string, std::string>> details() const override;

  // The tree of a sentence, by node, when all are parsed.
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
