#include "models/attentive_reader/cloze.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include "frontend/io/json_text.h"
#include "frontend/text/lines.h"
#include "frontend/text/moses_tokenizer.h"
#include "frontend/text/text_file.h"
#include "frontend/text/unicode.h"
#include "frontend/text/utf8.h"
#include "models/attentive_reader/sentences.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

class ClozeTokens {
 public:
  std::vector<std::string> operator()(std::string_view text) const {
    return tokens_of(text::lower_case_unicode(tokenize_(text)));
  }

 private:
  text::MosesTokenizer tokenize_{{.escape = false}};
};

// The content of a line of bAbI.
struct BabiLine {
  std::int64_t number = 0;
  std::string_view text, answer;  // no answer: it is part of the story
  bool asks = false;
};

BabiLine babi_line_of(const text::Line& line, const std::string& name) {
  BabiLine read;
  const char* last = line.text.data() + line.text.size();
  const auto [end, error] = std::from_chars(line.text.data(), last, read.number);
  const bool has_number = error == std::errc() && end != last && *end == ' ';
  check(has_number, ErrorKind::kBadInput,
        "[attentive_reader] {}: expected a number and text, got '{}'",
        text::place(name, line.number), text::clipped(line.text, 60));
  read.text = std::string_view(end + 1, std::size_t(last - end - 1));
  const std::size_t tab = read.text.find('\t');
  if (tab == read.text.npos) return read;
  read.asks = true;
  const std::string_view rest = read.text.substr(tab + 1);
  read.answer = rest.substr(0, std::min(rest.find('\t'), rest.size()));
  read.text = read.text.substr(0, tab);
  check(tokens_of(read.answer).size() == 1, ErrorKind::kBadInput,
        "[attentive_reader] {}: expected an answer of one word after the tab, got '{}'",
        text::place(name, line.number), text::clipped(read.answer, 60));
  return read;
}

// The place of the last token that ends a sentence, before the last token; or nothing.
std::optional<std::size_t> last_sentence_end(const std::vector<std::string>& tokens) {
  for (std::size_t i = tokens.size() - 1; i-- > 0;) {
    if (ends_sentence(tokens[i])) return i;
  }
  return std::nullopt;
}

std::string lambada_text_of(const text::Line& line, const std::string& name) {
  const std::optional<std::string> found = io::json_text(line.text, "text");
  check(found.has_value(), ErrorKind::kBadInput,
        "[attentive_reader] {}: expected a JSON object {{\"text\": ...}}, got '{}'",
        text::place(name, line.number), text::clipped(line.text, 60));
  return *found;
}

}  // namespace

std::vector<Question> read_babi(std::string_view text, const std::string& name) {
  const ClozeTokens tokenize;
  std::vector<Question> questions;
  TokenText story;
  std::int64_t last = 0;
  text::Lines lines(text);
  while (const std::optional<text::Line> line = lines.next()) {
    const BabiLine read = babi_line_of(*line, name);
    check(read.number == 1 || read.number == last + 1, ErrorKind::kBadInput,
          "[attentive_reader] {}: expected the number 1 or {}, got {}",
          text::place(name, line->number), last + 1, read.number);
    if (read.number == 1) story = {};
    last = read.number;
    std::vector<std::string> tokens = tokenize(read.text);
    if (!read.asks) {
      story.add_all(tokens);
      check(std::int64_t(story.size()) <= kMostQuestionTokens, ErrorKind::kBadInput,
            "[attentive_reader] {}: expected a story of at most {} tokens to end there, got {}",
            text::place(name, line->number), kMostQuestionTokens, story.size());
      continue;
    }
    check(!story.empty(), ErrorKind::kBadInput,
          "[attentive_reader] {}: expected a story before the question, got none",
          text::place(name, line->number));
    tokens.emplace_back(kPlaceholder);
    const std::string answer = text::lower_case_unicode(read.answer);
    questions.push_back({story, std::move(tokens), tokens_of(answer).front()});
  }
  return questions;
}

Converted read_lambada(std::string_view text, const std::string& name) {
  const ClozeTokens tokenize;
  Converted converted;
  text::Lines lines(text);
  while (const std::optional<text::Line> line = lines.next()) {
    std::vector<std::string> tokens = tokenize(lambada_text_of(*line, name));
    check(tokens.size() >= 2, ErrorKind::kBadInput,
          "[attentive_reader] {}: expected a text of two words or more, got {}",
          text::place(name, line->number), tokens.size());
    const std::optional<std::size_t> end = last_sentence_end(tokens);
    if (!end) {
      ++converted.without;
      continue;
    }
    const auto behind = tokens.begin() + std::ptrdiff_t(*end) + 1;
    Question question{{}, {behind, tokens.end() - 1}, tokens.back()};
    question.passage.add_all(std::span(tokens).first(*end + 1));
    question.question.emplace_back(kPlaceholder);
    converted.questions.push_back(std::move(question));
  }
  return converted;
}

}  // namespace keel::models
