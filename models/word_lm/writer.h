// The text that a word language model writes.
#pragma once

#include <string>
#include <vector>

#include "frontend/task/continuation.h"
#include "frontend/task/decoder.h"
#include "frontend/text/vocabulary.h"

namespace keel::models {

inline constexpr std::string_view kNextWord = "next";  // the network that the writer asks

// The inputs of that network, for a window of sizes {1, length}:
//   input  i32 (1, length)  the last words of the text, then padding
//   last   i32 (1)          the place of the last word in the window
// Its prediction is logits (1, words), of the word after the last.
std::vector<task::Input> window_inputs(const task::Sizes& sizes);

// Each new word is predicted from the last `length` words, or from all of fewer. The window is
// computed again for each, because a word's place in it changes with every further word.
class WindowWriter final : public task::Decoder {
 public:
  // Throws Error{kUsage} as task::SampleOptions and for a number of words below 0, and
  // Error{kBadInput} for a prompt that has no words, or a word that is not in the vocabulary. Every
  // end of a line is a word of the prompt, the last one too.
  WindowWriter(const text::Vocabulary& vocabulary, std::int64_t length, task::Continuation asked);

  std::int64_t size() const override { return 1; }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override { return {text_}; }

 private:
  void read_prompt();

  const text::Vocabulary& vocabulary_;
  std::int64_t length_;
  task::Continuation asked_;
  std::vector<std::int32_t> words_;  // of the prompt and of the text so far
  std::int64_t written_ = 0;
  std::string text_;
  task::Batch batch_;
};

}  // namespace keel::models
