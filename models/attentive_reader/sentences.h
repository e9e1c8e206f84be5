// The sentences of a passage that a question is most about.
#pragma once

#include <string>
#include <vector>

namespace keel::models {

// The `count` sentences of a passage that share most tokens with the question, in their order; of
// equals the earlier ones. A sentence ends with a token `.`, `?` or `!`. How many tokens of a
// sentence stand in the question is what counts, each place of it once. 0: all of the passage.
// Cooijmans et al. 2016 read passages cut to four sentences so ("top4"); which measure of a match
// they took is not published.
std::vector<std::string> best_sentences(const std::vector<std::string>& passage,
                                        const std::vector<std::string>& question,
                                        std::int64_t count);

// Whether a token ends a sentence.
bool ends_sentence(const std::string& token);

}  // namespace keel::models
