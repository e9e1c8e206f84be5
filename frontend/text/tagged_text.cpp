#include "frontend/text/tagged_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/unicode.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

constexpr std::array<std::string_view, 3> kSkippedTags = {"<url>", "<talkid>", "<keywords>"};
constexpr std::array<std::string_view, 4> kBareTags = {"<title>", "</title>", "<description>",
                                                       "</description>"};
constexpr std::string_view kApostrophe = "\u2019";

bool contains(std::string_view line, std::string_view part) {
  return line.find(part) != std::string_view::npos;
}

std::string replaced(std::string_view text, std::string_view part, std::string_view by) {
  std::string out;
  while (true) {
    const std::size_t at = text.find(part);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += by;
    text.remove_prefix(at + part.size());
  }
}

std::string trimmed(std::string_view text) {
  const auto* const first = std::ranges::find_if_not(text, is_blank);
  text.remove_prefix(static_cast<std::size_t>(first - text.begin()));
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return std::string(text);
}

// The lines of a text in one.
std::string joined(std::string_view text) {
  std::string all;
  Lines lines(text);
  while (const std::optional<Line> line = lines.next()) {
    const std::string part = trimmed(line->text);
    if (!part.empty()) all += (all.empty() ? "" : " ") + part;
  }
  return all;
}

// Reads sentences, with the numbers of the lines in which they begin.
class Segments {
 public:
  Segments(std::string_view content, const std::string& file) : content_(content), file_(file) {}

  // The next one, or nothing after the last. Throws as sentences_of_sgm.
  std::optional<Line> next() {
    for (at_ = content_.find('<', at_); at_ != std::string_view::npos;
         at_ = content_.find('<', at_)) {
      if (content_.substr(at_).starts_with("<!--")) {
        at_ = std::min(content_.find("-->", at_), content_.size());
      } else if (is_tag(at_, "<seg")) {
        return segment();
      } else {
        ++at_;
      }
    }
    check(found_, ErrorKind::kBadInput, "[text] {}: expected lines with <seg>, got none", file_);
    return std::nullopt;
  }

 private:
  // Whether a tag of this name, in letters of either case, begins here.
  bool is_tag(std::size_t at, std::string_view name) const {
    const std::string_view text = content_.substr(at);
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
    const bool fits = text.size() > name.size() &&
                      std::ranges::equal(text.substr(0, name.size()), name, {}, lower);
    if (!fits) return false;
    const char after = text[name.size()];
    return is_blank(after) || after == '\r' || after == '\n' || after == '>' || after == '/';
  }

  [[noreturn]] void fail_at(std::size_t at) const {
    const std::string_view line = content_.substr(at, content_.find_first_of("\r\n", at) - at);
    fail(ErrorKind::kBadInput, "[text] {}: expected <seg ...>text</seg>, got '{}'",
         place(file_, line_), clipped(line, 60));
  }

  // The end of the tag that begins here. A quoted value may hold what ends a tag elsewhere.
  std::size_t end_of_tag(std::size_t at) const {
    char quote = 0;
    for (std::size_t i = at + 1; i < content_.size(); ++i) {
      const char c = content_[i];
      if (c == '<') break;
      if (quote == 0 && c == '>') return i;
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (c == quote) {
        quote = 0;
      }
    }
    fail_at(at);
  }

  Line segment() {
    const std::size_t open = at_;
    line_ += std::count(content_.begin() + std::ptrdiff_t(counted_),
                        content_.begin() + std::ptrdiff_t(open), '\n');
    counted_ = open;
    const std::size_t begin = end_of_tag(open) + 1;
    found_ = true;
    at_ = begin;
    if (content_[begin - 2] == '/') return {"", line_};  // <seg id="1"/>
    std::size_t end = content_.find('<', begin);
    while (end != std::string_view::npos && !is_tag(end, "</seg")) {
      if (is_tag(end, "<seg")) fail_at(open);
      end = content_.find('<', end + 1);
    }
    if (end == std::string_view::npos) fail_at(open);
    expect_line_bytes(end - begin, file_, line_);
    at_ = end + 1;
    return {content_.substr(begin, end - begin), line_};
  }

  std::string_view content_;
  const std::string& file_;
  std::size_t at_ = 0, counted_ = 0;  // lines are counted up to there
  std::int64_t line_ = 1;
  bool found_ = false;
};

// The character that an entity such as "#233" or "amp" stands for; 0 for a name that is unknown.
char32_t character_of(std::string_view entity, const std::string& where) {
  constexpr std::array<std::pair<std::string_view, char32_t>, 5> kNames = {
      {{"amp", U'&'}, {"lt", U'<'}, {"gt", U'>'}, {"quot", U'"'}, {"apos", U'\''}}};
  for (const auto& [name, character] : kNames) {
    if (entity == name) return character;
  }
  if (!entity.starts_with('#')) return 0;
  const bool is_hexadecimal = entity.size() > 1 && (entity[1] == 'x' || entity[1] == 'X');
  const std::string_view digits = entity.substr(is_hexadecimal ? 2 : 1);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number,
                                            is_hexadecimal ? 16 : 10);
  const bool is_surrogate = number >= 0xD800 && number <= 0xDFFF;
  const bool is_character = error == std::errc{} && end == digits.data() + digits.size() &&
                            number >= 0x20 && number <= 0x10FFFF && !is_surrogate;
  check(is_character, ErrorKind::kBadInput,
        "[text] {}: expected the number of a character, got '&{};'", where, entity);
  return number;
}

// Replaces entities by their characters.
std::string with_characters(std::string_view text, const std::string& where) {
  constexpr std::size_t kLongest = 16;
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = text[at] == '&' ? text.substr(at, kLongest).find(';') : text.npos;
    const char32_t character =
        end == text.npos ? 0 : character_of(text.substr(at + 1, end - 1), where);
    if (character == 0) {
      out += text[at];
      continue;
    }
    append_utf8(out, character);
    at += end;
  }
  return out;
}

}  // namespace

std::vector<std::string> lines_of_tags(std::string_view content) {
  std::vector<std::string> kept;
  Lines lines(content);
  while (const std::optional<Line> line = lines.next()) {
    if (std::ranges::any_of(kSkippedTags, [&](auto tag) { return contains(line->text, tag); })) {
      continue;
    }
    std::string text(line->text);
    for (std::string_view tag : kBareTags) text = replaced(text, tag, "");
    kept.push_back(trimmed(text));
  }
  return kept;
}

std::vector<std::string> sentences_of_xml(std::string_view content, const std::string& file) {
  std::vector<std::string> sentences;
  Segments segments(content, file);
  while (const std::optional<Line> segment = segments.next()) {
    sentences.push_back(replaced(joined(segment->text), kApostrophe, "'"));
  }
  return sentences;
}

std::vector<std::string> sentences_of_sgm(std::string_view content, const std::string& file) {
  std::vector<std::string> sentences;
  Segments segments(content, file);
  while (const std::optional<Line> segment = segments.next()) {
    sentences.push_back(with_characters(joined(segment->text), place(file, segment->number)));
  }
  return sentences;
}

}  // namespace keel::text
