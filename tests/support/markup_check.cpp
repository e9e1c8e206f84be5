#include "tests/support/markup_check.h"

#include <algorithm>

namespace keel::test {
namespace {

bool well_formed_text(std::string_view text) {
  for (std::size_t at = text.find('&'); at != text.npos; at = text.find('&', at + 1)) {
    const std::string_view name = text.substr(at + 1, text.find(';', at) - at - 1);
    if (name != "amp" && name != "lt" && name != "gt" && name != "quot") return false;
  }
  return text.find('>') == text.npos;
}

}  // namespace

bool well_formed(std::string_view xml) {
  constexpr std::string_view kDocumentType = "<!DOCTYPE html>";
  if (xml.starts_with(kDocumentType)) xml.remove_prefix(kDocumentType.size());
  std::vector<std::string_view> open;
  while (!xml.empty()) {
    const std::size_t begin = std::min(xml.find('<'), xml.size());
    if (!well_formed_text(xml.substr(0, begin))) return false;
    if (begin == xml.size()) break;
    const std::size_t end = xml.find('>', begin);
    if (end == xml.npos) return false;
    const std::string_view tag = xml.substr(begin + 1, end - begin - 1);
    const std::string_view name = tag.substr(0, tag.find_first_of(" \n/", 1));
    if (tag.find('<') != tag.npos || std::ranges::count(tag, '"') % 2 != 0) return false;
    if (tag.front() == '/') {
      if (open.empty() || open.back() != name.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    xml.remove_prefix(end + 1);
  }
  return open.empty();
}

std::vector<std::string> texts_of(std::string_view xml, std::string_view element) {
  const std::string opening = "<" + std::string(element), closing = "</" + std::string(element);
  std::vector<std::string> texts;
  for (std::size_t at = xml.find(opening); at != xml.npos; at = xml.find(opening, at + 1)) {
    const std::size_t begin = xml.find('>', at) + 1;
    const char next = xml[at + opening.size()];
    if (next != '>' && next != ' ') continue;  // another element, whose name begins alike
    texts.emplace_back(xml.substr(begin, xml.find(closing, begin) - begin));
  }
  return texts;
}

}  // namespace keel::test
