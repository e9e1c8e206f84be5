// The form of a user's lines and of the answers of a network of translation.
#pragma once

#include <string>
#include <string_view>

#include "models/translation/files.h"

namespace keel::models {

// Raw lines are text as people write it: they are prepared as the training text was (Preparation),
// and Moses' detokenizer makes translations text again. Other lines are tokens, and so are the
// answers.
struct LineForm {
  bool is_raw = false, lower_case = false;
  std::string source = "", target = "";  // the languages of raw lines and of translations

  // "tokens", or "raw de en lower" ("cased" where case is kept), the form of checkpoints.
  std::string text() const;
  // Throws Error{kBadInput} for any other text.
  static LineForm parse(std::string_view text);
};

// The form of a data set of files.h. IWSLT14 is raw, because the making of its tokens is known;
// other tokenized sets are not. Throws Error{kUsage} as read_corpus does.
LineForm line_form_of(const CorpusOptions& options);

}  // namespace keel::models
