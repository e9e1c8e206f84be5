#include "frontend/text/tagged_text.h"

#include <algorithm>
#include <array>
#include <optional>

#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

constexpr std::array<std::string_view, 3> kLeftOutTags = {"<url>", "<talkid>", "<keywords>"};
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

}  // namespace

std::vector<std::string> lines_of_tags(std::string_view content) {
  std::vector<std::string> kept;
  Lines lines(content);
  while (const std::optional<Line> line = lines.next()) {
    if (std::ranges::any_of(kLeftOutTags, [&](auto tag) { return contains(line->text, tag); })) {
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
  Lines lines(content);
  while (const std::optional<Line> line = lines.next()) {
    const std::size_t open = line->text.find("<seg");
    if (open == std::string_view::npos) continue;
    const std::size_t begin = line->text.find('>', open), end = line->text.find("</seg>", open);
    check(begin != std::string_view::npos && end != std::string_view::npos && begin < end,
          ErrorKind::kBadInput, "[iwslt14] {}: expected <seg ...>text</seg>, got '{}'",
          place(file, line->number), clipped(line->text, 60));
    sentences.push_back(
        replaced(trimmed(line->text.substr(begin + 1, end - begin - 1)), kApostrophe, "'"));
  }
  check(!sentences.empty(), ErrorKind::kBadInput,
        "[iwslt14] {}: expected lines with <seg>, got none", file);
  return sentences;
}

}  // namespace keel::text
