#include "models/attentive_reader/question.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

constexpr std::string_view kEntity = "@entity";

// Lines without an empty one between them.
struct Block {
  std::int64_t line = 0;  // of the first
  std::string_view text;  // from the first line's beginning to the last one's end

  std::string_view first_line() const { return text::Lines(text).next()->text; }
};

bool is_empty(std::string_view line) { return std::ranges::all_of(line, text::is_blank); }

// Goes through the blocks of a text.
class Blocks {
 public:
  explicit Blocks(std::string_view text) : lines_(text) {}

  // The next block, or nothing.
  std::optional<Block> next() {
    std::optional<text::Line> line = lines_.next();
    while (line && is_empty(line->text)) line = lines_.next();
    if (!line) return std::nullopt;
    const text::Line first = *line;
    const char* end = nullptr;
    for (; line && !is_empty(line->text); line = lines_.next()) {
      end = line->text.data() + line->text.size();
    }
    return Block{first.number, {first.text.data(), std::size_t(end - first.text.data())}};
  }

 private:
  text::Lines lines_;
};

// Calls `take` with each word of a block.
template <class Take>
void each_word_of(const Block& block, const Take& take) {
  text::Lines lines(block.text);
  while (const std::optional<text::Line> line = lines.next()) text::each_word(line->text, take);
}

std::vector<std::string> tokens_of_block(const Block& block) {
  std::vector<std::string> tokens;
  each_word_of(block, [&](std::string_view word) { tokens.emplace_back(word); });
  return tokens;
}

TokenText text_of_block(const Block& block) {
  TokenText tokens;
  each_word_of(block, [&](std::string_view word) { tokens.add(word); });
  tokens.shrink_to_fit();
  return tokens;
}

// Whether a block says who the entities are: no address begins like this.
bool names_entities(const Block& block) {
  const std::string_view line = block.first_line();
  return line.starts_with(kEntity) && line.find(':') != line.npos;
}

// Whether a block begins like the address of a record, which no answer does.
bool is_address(const Block& block) {
  const std::string_view line = block.first_line();
  return line.starts_with("http://") || line.starts_with("https://");
}

class RecordReader {
 public:
  RecordReader(std::string_view text, const std::string& name)
      : blocks_(text), next_(blocks_.next()), name_(name) {}

  std::vector<Question> read() {
    std::vector<Question> questions;
    while (next_) questions.push_back(read_one());
    return questions;
  }

 private:
  // The part of a record that has to come; it begins with its address, at line `start`.
  Block take(std::string_view part, std::int64_t start) {
    const bool is_there = next_ && !names_entities(*next_);
    check(is_there, ErrorKind::kBadInput,
          "[attentive_reader] {}: expected the {} of the question that begins there, got {}",
          text::place(name_, start), part, next_ ? "the names of its entities" : "the end");
    return take_next(start);
  }

  Block take_next(std::int64_t start) {
    bytes_ += next_->text.size();
    check(bytes_ <= text::kMaxLineBytes, ErrorKind::kBadInput,
          "[attentive_reader] {}: expected a record of at most {} bytes to begin there, got a "
          "longer one",
          text::place(name_, start), text::kMaxLineBytes);
    return *std::exchange(next_, blocks_.next());
  }

  // An answer that is missing is followed by the next record's address, which is one token, too.
  Block take_answer(std::int64_t start) {
    const bool is_next = next_ && is_address(*next_);
    check(!is_next, ErrorKind::kBadInput,
          "[attentive_reader] {}: expected the answer of the question that begins there, got the "
          "address in line {}",
          text::place(name_, start), is_next ? next_->line : 0);
    return take("answer", start);
  }

  Question read_one() {
    const std::int64_t start = next_->line;
    bytes_ = 0;
    take("address", start);
    Question read;
    read.passage = text_of_block(take("passage", start));
    const Block question = take("question", start);
    read.question = tokens_of_block(question);
    const auto places = std::ranges::count(read.question, kPlaceholder);
    check(places == 1, ErrorKind::kBadInput,
          "[attentive_reader] {}: expected a question with one {}, got {} of them",
          text::place(name_, question.line), kPlaceholder, places);
    const Block answer = take_answer(start);
    const std::vector<std::string> words = tokens_of_block(answer);
    check(words.size() == 1, ErrorKind::kBadInput,
          "[attentive_reader] {}: expected an answer of one token, got '{}'",
          text::place(name_, answer.line), text::clipped(answer.first_line(), 60));
    read.answer = words.front();
    if (next_ && names_entities(*next_)) read_names(read, take_next(start));
    return read;
  }

  void read_names(Question& question, const Block& block) const {
    text::Lines lines(block.text);
    while (const std::optional<text::Line> next = lines.next()) {
      const std::string_view line = next->text;
      const std::size_t colon = std::min(line.find(':'), line.size());
      check(is_entity(line.substr(0, colon)) && colon < line.size(), ErrorKind::kBadInput,
            "[attentive_reader] {}: expected @entityN:name, got '{}'",
            text::place(name_, block.line + next->number - 1), text::clipped(line, 60));
      question.names.emplace(line.substr(0, colon), line.substr(colon + 1));
    }
  }

  Blocks blocks_;
  std::optional<Block> next_;  // nothing at the end
  const std::string& name_;
  std::size_t bytes_ = 0;  // of the record that is being read
};

}  // namespace

bool is_entity(std::string_view token) {
  if (!token.starts_with(kEntity) || token.size() == kEntity.size()) return false;
  return token.find_first_not_of("0123456789", kEntity.size()) == token.npos;
}

std::vector<Question> read_questions(std::string_view text, const std::string& name) {
  return RecordReader(text, name).read();
}

std::string text_of_question(const Question& question, std::string_view url) {
  std::string text = fmt::format("{}\n\n{}\n\n{}\n\n{}\n", url, question.passage.text(),
                                 fmt::join(question.question, " "), question.answer);
  if (!question.names.empty()) text += '\n';
  for (const auto& [entity, name] : question.names) text += fmt::format("{}:{}\n", entity, name);
  return text + '\n';
}

std::vector<std::string> tokens_of(std::string_view text) {
  const std::vector<std::string_view> words = text::words_of(text);
  return {words.begin(), words.end()};
}

}  // namespace keel::models
