#include "models/word_lm/writer.h"

#include <algorithm>

#include "frontend/decode/sampler.h"
#include "frontend/text/utf8.h"
#include "models/word_lm/corpus.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

// A word as it follows the text: the end of a line is one in the text, too.
std::string text_after(std::string_view text, const std::string& word) {
  if (word == kEndOfLine) return "\n";
  const bool begins_line = text.empty() || text.back() == '\n';
  return begins_line ? word : " " + word;
}

}  // namespace

std::vector<task::Input> window_inputs(const task::Sizes& sizes) {
  return {{"input", {DType::kI32, {sizes.at(0), sizes.at(1)}}}, {"last", {DType::kI32, {1}}}};
}

WindowWriter::WindowWriter(const text::Vocabulary& vocabulary, std::int64_t length,
                           task::Continuation asked)
    : vocabulary_(vocabulary), length_(length), asked_(std::move(asked)) {
  asked_.sample.validate();
  check(asked_.tokens >= 0, ErrorKind::kUsage, "tokens: expected 0 or more, got {}", asked_.tokens);
  read_prompt();
  const task::Sizes sizes{1, length_};
  batch_ = {
      .sizes = sizes, .values = {}, .rows = {0}, .items = 1, .network = std::string(kNextWord)};
  for (const task::Input& input : window_inputs(sizes)) batch_.values.emplace_back(input.type);
}

void WindowWriter::read_prompt() {
  text::Lines lines(asked_.prompt);
  while (const std::optional<text::Line> line = lines.next()) {
    if (line->number > 1) words_.push_back(number_of(vocabulary_, kEndOfLine));
    text::each_word(line->text, [&](std::string_view word) {
      const std::int32_t number = number_of(vocabulary_, word);
      check(number > 0 || word == "<unk>", ErrorKind::kBadInput,
            "prompt: expected words of the run, or <unk> in place of another, got '{}'",
            text::clipped(word, 40));
      words_.push_back(number);
    });
  }
  if (asked_.prompt.ends_with('\n')) words_.push_back(number_of(vocabulary_, kEndOfLine));
  check(!words_.empty(), ErrorKind::kBadInput, "prompt: expected at least one word, got none");
}

const task::Batch* WindowWriter::next() {
  if (written_ == asked_.tokens) return nullptr;
  const auto seen = std::min<std::int64_t>(length_, std::ssize(words_));
  const auto window = batch_.values[0].as<std::int32_t>();
  std::ranges::fill(window, 0);
  std::copy(words_.end() - seen, words_.end(), window.begin());
  batch_.values[1].as<std::int32_t>()[0] = std::int32_t(seen - 1);
  return &batch_;
}

void WindowWriter::take(const std::map<std::string, Tensor>& predictions) {
  const std::int32_t number =
      decode::drawn_token(predictions.at("logits").as<float>(), asked_.sample,
                          decode::token_uniform(asked_.sample.seed, written_));
  words_.push_back(number);
  ++written_;
  const std::string& word = vocabulary_.word(number + text::Vocabulary::kUnk);
  const std::string more = text_after(asked_.prompt + text_, word);
  text_ += more;
  if (asked_.give) asked_.give(more);
}

}  // namespace keel::models
