#include "frontend/text/sentences.h"

#include <optional>
#include <utility>

#include "frontend/text/lines.h"
#include "frontend/text/nonbreaking_prefixes.h"
#include "frontend/text/unicode.h"

namespace keel::text {
namespace {

bool ends_sentence(char32_t code) { return code == U'.' || code == U'!' || code == U'?'; }

bool closes(char32_t code) {
  return std::u32string_view(U"\"')]}*_\u2019\u201d\u00bb").find(code) != std::u32string_view::npos;
}

bool opens(char32_t code) {
  return std::u32string_view(U"\"'([{*_\u2018\u201c\u00ab\u2014-").find(code) !=
         std::u32string_view::npos;
}

bool is_capital(char32_t code) { return is_letter(code) && !is_lower(code); }

// Where a sentence of `text` that begins at `begin` ends: after its last character.
class SentenceCutter {
 public:
  explicit SentenceCutter(std::u32string_view text) : text_(text) {}

  std::size_t end_of(std::size_t begin) const {
    for (std::size_t i = begin; i < text_.size(); ++i) {
      if (!ends_sentence(text_[i])) continue;
      const std::size_t mark = i;
      while (i < text_.size() && ends_sentence(text_[i])) ++i;
      while (i < text_.size() && closes(text_[i])) ++i;
      if (i == text_.size() || (begins_another(i) && !belongs_to_word(begin, mark))) return i;
    }
    return text_.size();
  }

 private:
  // Whether a space and what may begin a sentence stand at i.
  bool begins_another(std::size_t i) const {
    if (text_[i] != U' ' || i + 1 == text_.size()) return false;
    const char32_t next = text_[i + 1];
    return is_capital(next) || is_digit(next) || opens(next);
  }

  // Whether the full stop at `mark` belongs to the word before it.
  bool belongs_to_word(std::size_t begin, std::size_t mark) const {
    static const NonbreakingPrefixes prefixes = NonbreakingPrefixes::of_language("en");
    if (text_[mark] != U'.') return false;
    std::size_t first = mark;
    while (first > begin && is_alphanumeric(text_[first - 1])) --first;
    const std::u32string_view word = text_.substr(first, mark - first);
    return (word.size() == 1 && is_capital(word[0])) || prefixes.always(utf8_of(word));
  }

  std::u32string_view text_;
};

void cut(const std::string& paragraph, std::vector<std::string>& sentences) {
  const std::u32string text = code_points(paragraph);
  const SentenceCutter cutter(text);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = cutter.end_of(begin);
    sentences.push_back(utf8_of(std::u32string_view(text).substr(begin, end - begin)));
    begin = end + 1;  // a space
  }
}

bool has_paragraph_a_line(std::string_view prose) {
  Lines lines(prose);
  while (const std::optional<Line> line = lines.next()) {
    if (line->text.size() > kLongestPrinted) return true;
  }
  return false;
}

bool is_indented(std::string_view line) { return line.starts_with(' ') || line.starts_with('\t'); }

}  // namespace

std::vector<std::string> sentences_of(std::string_view prose) {
  if (prose.starts_with("\xEF\xBB\xBF")) prose.remove_prefix(3);
  const bool is_paragraph = has_paragraph_a_line(prose);
  std::vector<std::string> sentences;
  std::string paragraph;
  const auto end_paragraph = [&] { cut(std::exchange(paragraph, {}), sentences); };
  Lines lines(prose);
  while (const std::optional<Line> line = lines.next()) {
    const std::vector<std::string_view> words = split_at_spaces(line->text);
    if (is_paragraph || words.empty() || is_indented(line->text)) end_paragraph();
    for (const std::string_view word : words) {
      if (!paragraph.empty()) paragraph += ' ';
      paragraph += word;
    }
  }
  end_paragraph();
  return sentences;
}

}  // namespace keel::text
