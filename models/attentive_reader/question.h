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

namespace keel::models {

inline constexpr std::string_view kPlaceholder = "@placeholder";

// The most tokens of a passage, or of a question, that anything is asked about: the network is as
// long as they are.
inline constexpr std::int64_t kMostQuestionTokens = 10000;

struct Question {
  std::vector<std::string> passage, question;  // tokens
  std::string answer;
  std::map<std::string, std::string> names = {};  // of entities
};

// "@entity12" is one of the words that stand for a person, a place or a thing.
bool is_entity(std::string_view token);

// The records of a text. Throws Error{kBadInput} with `name` and the line for a record that ends
// too early, without an answer say, or has the next one's address (http...) for an answer, a
// passage without tokens, a question that has not one
// @placeholder, an answer that is not one token, an entity that is none, and a record of more than
// text::kMaxLineBytes.
std::vector<Question> read_questions(std::string_view text, const std::string& name);

// A record of the form.
std::string text_of_question(const Question& question, std::string_view url);

// Tokens of a text with blanks between.
std::vector<std::string> tokens_of(std::string_view text);

using QuestionCorpus = data::Corpus<std::vector<Question>>;

}  // namespace keel::models
