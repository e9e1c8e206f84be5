#include "frontend/text/bpe_codes.h"

#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

constexpr std::int64_t kMaxCodesBytes = 1 << 28;
constexpr std::string_view kVersion = "#version:";

// Whether the symbols end words as version 0.1 has it.
bool is_old_version(const Line& line, const std::string& file) {
  const std::vector<std::string_view> words = words_of(line.text);
  const std::string_view version = words.size() == 2 ? words[1] : std::string_view();
  check(version == "0.1" || version == "0.2", ErrorKind::kBadInput,
        "[bpe] {}: expected #version: 0.1 or 0.2, got '{}'", place(file, line.number),
        clipped(line.text, 60));
  return version == "0.1";
}

BpeMerge parse_merge(const Line& line, const std::string& file) {
  const std::size_t space = std::min(line.text.find(' '), line.text.size());
  const std::string_view left = line.text.substr(0, space);
  const std::string_view right = line.text.substr(std::min(space + 1, line.text.size()));
  check(!left.empty() && !right.empty() && right.find(' ') == std::string_view::npos,
        ErrorKind::kBadInput, "[bpe] {}: expected two symbols with a space between, got '{}'",
        place(file, line.number), clipped(line.text, 60));
  return {std::string(left), std::string(right)};
}

}  // namespace

BpeCodes BpeCodes::load(const std::filesystem::path& path) {
  return parse(read_text(path, kMaxCodesBytes), path.string());
}

BpeCodes BpeCodes::parse(std::string_view content, const std::string& file) {
  BpeCodes codes;
  codes.separate_end = true;
  Lines lines(content);
  while (const std::optional<Line> line = lines.next()) {
    if (line->number == 1 && line->text.starts_with(kVersion)) {
      codes.separate_end = is_old_version(*line, file);
    } else {
      codes.merges.push_back(parse_merge(*line, file));
    }
  }
  return codes;
}

std::string BpeCodes::text() const {
  std::string text = fmt::format("{} {}\n", kVersion, separate_end ? "0.1" : "0.2");
  for (const BpeMerge& merge : merges) text += merge.left + " " + merge.right + "\n";
  return text;
}

}  // namespace keel::text
