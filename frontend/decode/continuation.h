// A language model at work: it reads a prompt and then writes one token after the other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/task/continuation.h"
#include "frontend/task/decoder.h"

namespace keel::decode {

// A task supplies this. Its network of this name (task::Network::build_search) has the sizes
// {1, length} and these inputs and predictions:
//   input   i32 (1, length)  tokens that follow those of the batch before
//   begins  u8 (1)           1 in the first batch: nothing is carried into it (nn::Carry)
//   logits  (1, vocabulary)  of the token after the last of them
// Its memory between batches, such as keys and values, is in its carries.
struct ContinuationModel {
  std::string network;
  std::vector<std::int32_t> prompt;                  // at least one token
  std::function<std::string(std::int32_t)> text_of;  // of a token that was drawn
  std::int64_t longest = 64;                         // tokens that the network takes in one batch
};
std::vector<task::Input> continuation_inputs(const task::Sizes& sizes);

// The prompt goes through the network in batches of `longest` tokens and then of powers of two, the
// largest first, so that few programs serve prompts of all lengths. Its answer is the text without
// the prompt.
class TextWriter final : public task::Decoder {
 public:
  // Throws Error{kUsage} for options that are out of range, and for a prompt without tokens.
  TextWriter(ContinuationModel model, task::Continuation asked);

  std::int64_t size() const override { return 1; }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override { return {text_}; }
  std::int64_t written() const { return written_; }

 private:
  ContinuationModel model_;
  task::Continuation asked_;
  std::vector<std::int32_t> waiting_;  // tokens that the network has not read
  std::size_t read_ = 0;               // of them
  std::int64_t written_ = 0;
  bool has_begun_ = false;
  std::string text_;
  task::Batch batch_;
};

}  // namespace keel::decode
