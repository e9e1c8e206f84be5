// The sentences of a passage that are closest to a question.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/attentive_reader/token_text.h"

namespace keel::models {

// The `count` sentences of a passage that share most tokens with the question, in their order; of
// equally good ones the earlier. The measure is the number of positions of a sentence whose token
// occurs in the question. A sentence ends with a token `.`, `?` or `!`. With `count` 0 all
// sentences stay. Cooijmans et al. 2016 read passages cut to four sentences in this way ("top4");
// they did not publish their measure of a match.
TokenText best_sentences(const TokenText& passage, const std::vector<std::string>& question,
                         std::int64_t count);

// Whether a token ends a sentence.
bool ends_sentence(std::string_view token);

}  // namespace keel::models
