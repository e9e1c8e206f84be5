#include "models/attentive_reader/question.h"

#include <algorithm>
#include <optional>

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
  std::vector<std::string_view> lines;
};

std::vector<Block> blocks_of(std::string_view text) {
  std::vector<Block> blocks;
  text::Lines lines(text);
  bool is_open = false;
  while (const std::optional<text::Line> line = lines.next()) {
    const bool is_empty = text::words_of(line->text).empty();
    if (!is_empty && !is_open) blocks.push_back({line->number, {}});
    if (!is_empty) blocks.back().lines.push_back(line->text);
    is_open = !is_empty;
  }
  return blocks;
}

std::vector<std::string> tokens_of_block(const Block& block) {
  std::vector<std::string> tokens;
  for (const std::string_view line : block.lines) {
    for (const std::string_view word : text::words_of(line)) tokens.emplace_back(word);
  }
  return tokens;
}

// Whether a block says who the entities are: no address begins like this.
bool names_entities(const Block& block) {
  const std::string_view line = block.lines.front();
  return line.starts_with(kEntity) && line.find(':') != line.npos;
}

// Whether a block begins like the address of a record, which no answer does.
bool is_address(const Block& block) {
  const std::string_view line = block.lines.front();
  return line.starts_with("http://") || line.starts_with("https://");
}

class RecordReader {
 public:
  RecordReader(std::string_view text, const std::string& name)
      : blocks_(blocks_of(text)), name_(name) {}

  std::vector<Question> read() {
    std::vector<Question> questions;
    while (next_ < blocks_.size()) questions.push_back(read_one());
    return questions;
  }

 private:
  // The part of a record that has to come; it begins with its address, at line `start`.
  const Block& take(std::string_view part, std::int64_t start) {
    const bool is_there = next_ < blocks_.size() && !names_entities(blocks_[next_]);
    check(is_there, ErrorKind::kBadInput,
          "[attentive_reader] {}: expected the {} of the question that begins there, got {}",
          text::place(name_, start), part,
          next_ < blocks_.size() ? "the names of its entities" : "the end");
    return blocks_[next_++];
  }

  // An answer that is missing is followed by the next record's address, which is one token, too.
  const Block& take_answer(std::int64_t start) {
    const bool is_next = next_ < blocks_.size() && is_address(blocks_[next_]);
    check(!is_next, ErrorKind::kBadInput,
          "[attentive_reader] {}: expected the answer of the question that begins there, got the "
          "address in line {}",
          text::place(name_, start), is_next ? blocks_[next_].line : 0);
    return take("answer", start);
  }

  Question read_one() {
    const std::int64_t start = blocks_[next_].line;
    take("address", start);
    Question read;
    read.passage = tokens_of_block(take("passage", start));
    const Block& question = take("question", start);
    read.question = tokens_of_block(question);
    const auto places = std::ranges::count(read.question, kPlaceholder);
    check(places == 1, ErrorKind::kBadInput,
          "[attentive_reader] {}: expected a question with one {}, got {} of them",
          text::place(name_, question.line), kPlaceholder, places);
    const Block& answer = take_answer(start);
    const std::vector<std::string> words = tokens_of_block(answer);
    check(words.size() == 1, ErrorKind::kBadInput,
          "[attentive_reader] {}: expected an answer of one token, got '{}'",
          text::place(name_, answer.line), text::clipped(answer.lines.front(), 60));
    read.answer = words.front();
    if (next_ < blocks_.size() && names_entities(blocks_[next_])) read_names(read);
    return read;
  }

  void read_names(Question& question) {
    const Block& block = blocks_[next_++];
    for (std::size_t i = 0; i < block.lines.size(); ++i) {
      const std::string_view line = block.lines[i];
      const std::size_t colon = std::min(line.find(':'), line.size());
      check(is_entity(line.substr(0, colon)) && colon < line.size(), ErrorKind::kBadInput,
            "[attentive_reader] {}: expected @entityN:name, got '{}'",
            text::place(name_, block.line + std::int64_t(i)), text::clipped(line, 60));
      question.names.emplace(line.substr(0, colon), line.substr(colon + 1));
    }
  }

  std::vector<Block> blocks_;
  const std::string& name_;
  std::size_t next_ = 0;
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
  std::string text = fmt::format("{}\n\n{}\n\n{}\n\n{}\n", url, fmt::join(question.passage, " "),
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
