// Other data sets as questions on passages: bAbI (Weston et al. 2015) and LAMBADA (Paperno et al.
// 2016). Their text is cut into tokens as Moses does it, without escapes, in lower case.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/attentive_reader/question.h"

namespace keel::models {

// Reads a file of bAbI: lines `number text`, or `number question <tab> answer <tab> ...`. Numbers
// begin at 1 in each story. The passage is the story so far; the question is that of the file with
// @placeholder after it. An answer such as `yes`, a count or `n,w` need not be a word of the story,
// because the network answers with any word that it knows. Throws Error{kBadInput} with file and
// line for a line without text, without a number or with a number out of order, for a question
// without a story or with an answer that is not one word, and for a story of more than
// kMostQuestionTokens.
std::vector<Question> read_babi(std::string_view text, const std::string& name);

// Questions in the form of question.h, and the number of those that could not be converted.
struct Converted {
  std::vector<Question> questions;
  std::int64_t without = 0;
};

// Reads LAMBADA: each line is a JSON object {"text": ...}. The last word of a text is the answer.
// The rest of its sentence is the question, with @placeholder at the end, and the sentences before
// are the passage. Texts of one sentence are left out. Throws Error{kBadInput} with file and line
// for a line that is no such object, and for a text of fewer than two words.
Converted read_lambada(std::string_view text, const std::string& name);

}  // namespace keel::models
