#include "models/translation/line_form.h"

#include <vector>

#include "frontend/text/lines.h"
#include "frontend/text/utf8.h"
#include "models/translation/corpus_layout.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

constexpr std::string_view kTokens = "tokens", kRaw = "raw", kLower = "lower", kCased = "cased";

}  // namespace

std::string LineForm::text() const {
  if (!is_raw) return std::string(kTokens);
  return fmt::format("{} {} {} {}", kRaw, source, target, lower_case ? kLower : kCased);
}

LineForm LineForm::parse(std::string_view text) {
  if (text == kTokens) return {};
  const std::vector<std::string_view> words = text::words_of(text);
  check(words.size() == 4 && words[0] == kRaw && (words[3] == kLower || words[3] == kCased),
        ErrorKind::kBadInput,
        "[translation] form: expected 'tokens', or 'raw', two languages and 'lower' or 'cased', "
        "got '{}'",
        text::clipped(text, 60));
  return {true, words[3] == kLower, std::string(words[1]), std::string(words[2])};
}

LineForm line_form_of(const CorpusOptions& options) {
  const CorpusLayout& layout = layout_of(options.corpus);
  const bool is_iwslt14 = layout.corpus == "iwslt14";
  if (options.tokenized || (!layout.raw && !is_iwslt14)) return {};
  const auto [source, target] = sides_of(layout, options.languages);
  return {true, is_iwslt14 || options.lower_case, source.language, target.language};
}

}  // namespace keel::models
