// Other data sets as questions on passages: bAbI (Weston et al. 2015) and LAMBADA (Paperno et al.
// 2016). Their text is cut into tokens as Moses does it, without escapes, in lower case.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/attentive_reader/question.h"

namespace keel::models {

// A file of bAbI: lines `number text`, or `number question <tab> answer <tab> ...`, numbers
// beginning at 1 with each story. The passage is the story so far, the question that of the file
// with @placeholder after it. An answer may be no word of the story, such as `yes`, a count or
// `n,w`, for the network answers with any word that it knows. Throws Error{kBadInput} with file and
// line for a line without a number, with one that does not follow, without text, and for a question
// without a story or whose answer is not one word, and for a story of more than
// kMostQuestionTokens.
std::vector<Question> read_babi(std::string_view text, const std::string& name);

// Questions that became some of the form, and how many could not.
struct Converted {
  std::vector<Question> questions;
  std::int64_t without = 0;
};

// LAMBADA, a JSON object {"text": ...} a line. The last word of a text is the answer, what stands
// before it in its sentence is the question, with @placeholder at the end, and the sentences before
// are the passage. Left out are texts of one sentence. Throws Error{kBadInput} with file and line
// for a line that is no such object, and for a text of fewer than two words.
Converted read_lambada(std::string_view text, const std::string& name);

}  // namespace keel::models
