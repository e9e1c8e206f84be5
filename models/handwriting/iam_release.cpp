#include "models/handwriting/iam_release.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <pugixml.hpp>

#include "frontend/io/packed_file.h"
#include "frontend/io/visible_files.h"
#include "frontend/text/line_reader.h"
#include "frontend/text/lines.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostFileBytes = 1 << 26;
constexpr std::int64_t kFarthestPoint = 1 << 24;  // what a float holds exactly
constexpr std::size_t kFormId = 8;                // "a01-000u"

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) + 1 - first);
}

// The files below a folder with that extension, in the order of their names.
std::vector<fs::path> files_below(const fs::path& folder, std::string_view extension) {
  std::error_code error;
  std::vector<fs::path> files = io::visible_files_below(folder, error);
  std::erase_if(files, [&](const fs::path& file) { return file.extension() != extension; });
  check(!error, ErrorKind::kIo, "[handwriting] {}: {}", folder.string(), error.message());
  std::ranges::sort(files, {}, [](const fs::path& file) { return file.filename(); });
  return files;
}

std::int64_t coordinate(const pugi::xml_node& point, const char* axis, std::string_view place,
                        std::size_t number) {
  const std::string_view text = point.attribute(axis).value();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  check(whole && value >= -kFarthestPoint && value <= kFarthestPoint, ErrorKind::kBadInput,
        "{}: point {}: expected {} to be a whole number up to {}, got '{}'", place, number, axis,
        kFarthestPoint, text.substr(0, 40));
  return value;
}

}  // namespace

bool has_iam_release(const fs::path& folder) {
  std::error_code unreadable;
  return fs::is_directory(folder / "lineStrokes", unreadable);
}

std::vector<std::string> parse_iam_lines(std::string_view text, std::string_view place) {
  std::vector<std::string> lines;
  bool begun = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (begun && !line.empty()) lines.emplace_back(line);
    begun = begun || line == "CSR:";
  }
  check(begun, ErrorKind::kBadInput, "{}: expected a line 'CSR:', got none", place);
  return lines;
}

std::vector<PenPoint> parse_iam_strokes(std::string_view xml, std::string_view place) {
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_buffer(xml.data(), xml.size());
  check(bool(result), ErrorKind::kBadInput, "{}: byte {}: expected XML: {}", place, result.offset,
        result.description());
  std::vector<PenPoint> points;
  std::int64_t x = 0, y = 0;
  for (const pugi::xml_node stroke : document.document_element().child("StrokeSet")) {
    for (const pugi::xml_node point : stroke.children("Point")) {
      const std::int64_t to_x = coordinate(point, "x", place, points.size() + 1),
                         to_y = coordinate(point, "y", place, points.size() + 1);
      const bool first = points.empty();
      points.push_back({first ? 0 : float(to_x - x), first ? 0 : float(y - to_y), false});
      x = to_x;
      y = to_y;
    }
    if (!points.empty()) points.back().lifts = true;
  }
  check(points.size() >= 2, ErrorKind::kBadInput,
        "{}: expected a StrokeSet of 2 points or more, got {}", place, points.size());
  return points;
}

std::set<std::string> read_iam_list(const fs::path& path) {
  std::set<std::string> forms;
  if (!fs::exists(path)) return forms;
  text::LineReader reader(path);
  while (const std::optional<text::Line> line = reader.next()) {
    if (const std::string_view form = trimmed(line->text); !form.empty()) forms.emplace(form);
  }
  return forms;
}

IamRelease read_iam_release(const fs::path& folder, const Alphabet& alphabet) {
  std::map<std::string, std::vector<fs::path>> strokes;  // of each form
  for (const fs::path& file : files_below(folder / "lineStrokes", ".xml")) {
    strokes[file.stem().string().substr(0, kFormId)].push_back(file);
  }
  IamRelease release;
  for (const fs::path& file : files_below(folder / "ascii", ".txt")) {
    const std::string form = file.stem().string(), place = "[handwriting] " + file.string();
    const std::vector<std::string> lines =
        parse_iam_lines(io::read_file(file, kMostFileBytes), place);
    const std::vector<fs::path>& files = strokes[form];
    if (files.size() != lines.size()) {
      release.unmatched += std::ssize(lines);
      continue;
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string xml = io::read_file(files[i], kMostFileBytes);
      release.lines.push_back(
          {form, WrittenLine{alphabet.numbers(lines[i], place),
                             parse_iam_strokes(xml, "[handwriting] " + files[i].string())}});
    }
  }
  return release;
}

}  // namespace keel::models
