// Questions on passages of text, in the form of Hermann et al. 2015, "Teaching Machines to Read and
// Comprehend": a record is
//     where it is from, a line      the passage      the question, with one @placeholder
//     the answer, a line            the entities, a line `@entityN:name` each
// in this order with an empty line, or several, between them. The last part may be missing. Tokens
// have blanks between them. A file may hold one record or many, one after the other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/data/corpus.h"
#include "models/attentive_reader/token_text.h"

namespace keel::models {

inline constexpr std::string_view kPlaceholder = "@placeholder";

// The most tokens of a passage or a question that keel accepts, because the network is as long as
// they are.
inline constexpr std::int64_t kMostQuestionTokens = 10000;

struct Question {
  TokenText passage;
  std::vector<std::string> question;  // tokens
  std::string answer;
  std::map<std::string, std::string> names = {};  // of entities
};

// Whether a token is an entity, such as "@entity12": it stands for a person, a place or a thing.
bool is_entity(std::string_view token);

// The records of a text. Throws Error{kBadInput} with `name` and the line for a record that
// ends too early, for example without an answer, or whose answer is the address (http...) of
// the next record; for a passage without tokens, a question without exactly one @placeholder,
// an answer that is not one token, a damaged entity, and a record of more than
// text::kMaxLineBytes.
std::vector<Question> read_questions(std::string_view text, const std::string& name);

// A record of the form.
std::string text_of_question(const Question& question, std::string_view url);

// Tokens of a text with blanks between.
std::vector<std::string> tokens_of(std::string_view text);

using QuestionCorpus = data::Corpus<std::vector<Question>>;

}  // namespace keel::models
