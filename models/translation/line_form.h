// In which form a network of translation takes lines of a user, and gives its answers.
#pragma once

#include <string>
#include <string_view>

#include "models/translation/files.h"

namespace keel::models {

// Raw lines are text as people write it: they are prepared as the training text was (Preparation),
// and translations become text again by Moses' detokenizer. Other lines are tokens, and answers
// are, too.
struct LineForm {
  bool is_raw = false, lower_case = false;
  std::string source = "", target = "";  // the languages of raw lines and of translations

  // "tokens", or "raw de en lower", as checkpoints keep it; "cased" where case is kept.
  std::string text() const;
  // Throws Error{kBadInput} for any other text.
  static LineForm parse(std::string_view text);
};

// That of a data set of files.h. IWSLT14 is raw, for how its tokens were made is known; of the
// other sets that are tokens already it is not. Throws Error{kUsage} as read_corpus does.
LineForm line_form_of(const CorpusOptions& options);

}  // namespace keel::models
