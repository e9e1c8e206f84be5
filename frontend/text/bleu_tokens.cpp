// BLEU's two own tokenizations: mteval-v13a's, and words with their compounds split.
#include <array>
#include <utility>

#include "frontend/text/bleu.h"
#include "frontend/text/unicode.h"

namespace keel::text {
namespace {

bool is_number_sign(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }

// The ASCII signs that 13a always sets apart: all but ' , - . and the digits and letters.
bool is_13a_sign(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

std::string without(std::string_view text, std::string_view part, std::string_view by) {
  std::string out;
  while (true) {
    const std::size_t at = text.find(part);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += by;
    text.remove_prefix(at + part.size());
  }
}

// Puts `before`, `between` and `behind` round two bytes of the given kinds, from left to right;
// bytes that were matched are not looked at again. A byte of a longer character is of any kind but
// digits and stops, so that no character is cut.
struct Spacing {
  std::string_view before, between, behind;
};
template <class First, class Second>
std::string space_pairs(std::string_view text, First first, Second second, const Spacing& spacing) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      ((out += spacing.before) += text[i]) += spacing.between;
      (out += text[i + 1]) += spacing.behind;
      i += 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::string joined_by_spaces(std::string_view text) {
  std::string out;
  for (std::string_view word : split_at_spaces(text)) (out += out.empty() ? "" : " ") += word;
  return out;
}

}  // namespace

std::string tokens_13a(std::string_view line) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kReplaced = {
      {{"<skipped>", ""}, {"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}}};
  std::string plain(line);
  for (const auto& [part, by] : kReplaced) plain = without(plain, part, by);
  std::string text = " ";
  for (char c : plain + " ") {
    const std::string_view space = is_13a_sign(c) ? " " : "";
    ((text += space) += c) += space;
  }
  const auto no_number = [](char c) { return !is_number_sign(c); };
  text = space_pairs(text, no_number, is_stop, {"", " ", " "});
  text = space_pairs(text, is_stop, no_number, {" ", " ", ""});
  text = space_pairs(text, is_number_sign, [](char c) { return c == '-'; }, {"", " ", " "});
  return joined_by_spaces(text);
}

// Characters that were matched are not looked at again: of "a-b-c" the second hyphen stays.
std::string with_split_compounds(std::string_view line) {
  std::string out;
  const std::u32string text = code_points(line);
  for (std::size_t i = 0; i < text.size(); ++i) {
    append_utf8(out, text[i]);
    const bool compound =
        i + 2 < text.size() && text[i + 1] == U'-' && !is_space(text[i]) && !is_space(text[i + 2]);
    if (!compound) continue;
    out += " ##AT##-##AT## ";
    append_utf8(out, text[i + 2]);
    i += 2;
  }
  return out;
}

}  // namespace keel::text
