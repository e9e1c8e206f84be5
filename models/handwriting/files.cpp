#include "models/handwriting/files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "frontend/data/permutation.h"
#include "frontend/io/near_miss.h"
#include "frontend/io/packed_file.h"
#include "frontend/text/line_reader.h"
#include "frontend/text/text_file.h"
#include "models/handwriting/scale.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "iamondb-lines.tsv";
constexpr const char* kValidList = "testset_v.txt";
constexpr std::uint64_t kSplitKey = 20050829;
constexpr std::size_t kTextId = 7;
constexpr std::int64_t kFewestPoints = 100;
constexpr double kLongestJump = 25;          // in standard deviations
constexpr std::int64_t kFarthest = 1 << 24;  // what a float holds exactly

// Takes what stands before the next `end` off the front.
std::string_view take_field(std::string_view& rest, char end) {
  const std::size_t at = std::min(rest.find(end), rest.size());
  const std::string_view field = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return field;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "dx dy e"
PenPoint parse_point(std::string_view text, std::string_view place, std::size_t number) {
  std::string_view rest = text;
  const auto dx = whole_number(take_field(rest, ' ')), dy = whole_number(take_field(rest, ' '));
  const auto is_near = [](const std::optional<std::int64_t>& d) {
    return d && *d >= -kFarthest && *d <= kFarthest;
  };
  check(is_near(dx) && is_near(dy) && (rest == "0" || rest == "1"), ErrorKind::kBadInput,
        "{}: point {}: expected 'dx dy e', whole numbers up to {} and 0 or 1, got '{}'", place,
        number, kFarthest, text.substr(0, 40));
  return {float(*dx), -float(*dy), rest == "1"};
}

std::vector<PenPoint> parse_points(std::string_view text, std::string_view place) {
  std::vector<PenPoint> points;
  while (!text.empty()) {
    points.push_back(parse_point(take_field(text, ','), place, points.size() + 1));
  }
  if (!points.empty()) points[0].dx = points[0].dy = 0;
  return points;
}

// Which portion of the corpus a line belongs to.
using PortionOf = std::function<task::Split(const IamLine&)>;

struct AllLines {
  std::string origin;  // for messages
  std::vector<IamLine> lines;
  std::int64_t unmatched = 0;
  PortionOf portion_of = {};  // absent: of the text
};

std::string text_of(const IamLine& line) { return line.form.substr(0, kTextId); }

AllLines read_table(const fs::path& path, const Alphabet& alphabet) {
  AllLines all{.origin = path.string(), .lines = {}};
  text::LineReader reader(path);
  while (const std::optional<text::Line> line = reader.next()) {
    all.lines.push_back(parse_iam_row(line->text, alphabet,
                                      "[handwriting] " + text::place(path.string(), line->number)));
  }
  return all;
}

AllLines read_release(const fs::path& folder, const Alphabet& alphabet) {
  IamRelease release = read_iam_release(folder, alphabet);
  AllLines all{
      .origin = folder.string(), .lines = std::move(release.lines), .unmatched = release.unmatched};
  const std::set<std::string> valid = read_iam_list(folder / kValidList);
  if (valid.empty()) return all;
  all.portion_of = [valid](const IamLine& line) {
    const bool is_listed = valid.contains(line.form) || valid.contains(text_of(line));
    return is_listed ? task::Split::kValid : task::Split::kTrain;
  };
  return all;
}

AllLines read_all(const fs::path& folder, const Alphabet& alphabet) {
  for (const fs::path& place : {folder, folder / "handwriting"}) {
    if (const auto table = io::find_packed(place / kFile)) return read_table(*table, alphabet);
    if (has_iam_release(place)) return read_release(place, alphabet);
  }
  fail(ErrorKind::kIo,
       "[handwriting] {}: expected {}, plain, .gz or .xz, or folders lineStrokes and ascii, there "
       "or in its folder handwriting, got none of them{}",
       folder.string(), kFile, io::near_misses(folder, {".tsv", "strokes", "ascii", ".xml"}));
}

PortionOf split_by_text(const AllLines& all) {
  std::set<std::string> texts;
  for (const IamLine& line : all.lines) texts.insert(text_of(line));
  const std::int64_t count = std::ssize(texts), tenth = count / 10;
  check(tenth >= 1, ErrorKind::kBadInput,
        "[handwriting] {}: expected lines of 10 texts or more, got {}", all.origin, count);
  const std::vector<std::string> names(texts.begin(), texts.end());
  const std::vector<std::int64_t> order =
      data::permutation(count, Philox(kSplitKey, stream_of("handwriting.split")));
  std::map<std::string, task::Split> portions;
  for (std::int64_t i = 0; i < count; ++i) {
    portions[names[std::size_t(order[std::size_t(i)])]] = i < tenth       ? task::Split::kValid
                                                          : i < 2 * tenth ? task::Split::kTest
                                                                          : task::Split::kTrain;
  }
  return [portions](const IamLine& line) { return portions.at(text_of(line)); };
}

// Leaves out short lines, and such with a jump. Returns how many.
std::int64_t leave_out(WrittenLines& lines, const OffsetScale& scale) {
  const auto is_unfit = [&](const WrittenLine& line) {
    return std::ssize(line.points) < kFewestPoints ||
           std::ranges::any_of(line.points, [&](const PenPoint& p) {
             return std::abs(p.dx - scale.mean_x) > kLongestJump * scale.deviation_x ||
                    std::abs(p.dy - scale.mean_y) > kLongestJump * scale.deviation_y;
           });
  };
  return std::int64_t(std::erase_if(lines, is_unfit));
}

}  // namespace

IamLine parse_iam_row(std::string_view row, const Alphabet& alphabet, std::string_view place) {
  const std::int64_t tabs = std::ranges::count(row, '\t');
  check(tabs == 3, ErrorKind::kBadInput,
        "{}: expected 4 fields with tabs between, id, text, count and points, got {}", place,
        tabs + 1);
  std::string_view rest = row;
  const std::string_view id = take_field(rest, '\t'), text = take_field(rest, '\t');
  check(id.size() >= kTextId, ErrorKind::kBadInput,
        "{}: expected an id of 7 characters or more, got '{}'", place, id);
  check(!text.empty(), ErrorKind::kBadInput, "{}: expected a text, got an empty one", place);
  const std::string_view count = take_field(rest, '\t');
  WrittenLine line{alphabet.numbers(text, place), parse_points(rest, place)};
  check(whole_number(count) == std::ssize(line.points) && line.points.size() >= 2,
        ErrorKind::kBadInput, "{}: expected {} points, 2 or more, got {}", place, count,
        line.points.size());
  return {std::string(id), std::move(line)};
}

HandwritingCorpus read_iam_table(const fs::path& file, task::Split split,
                                 const OffsetScale& scale) {
  HandwritingCorpus corpus{{.name = "handwriting", .origin = ""}, Alphabet::of_letters()};
  AllLines all = read_table(file, corpus.alphabet);
  WrittenLines lines;
  for (IamLine& line : all.lines) lines.push_back(std::move(line.line));
  const std::int64_t unfit = leave_out(lines, scale);
  check(!lines.empty(), ErrorKind::kBadInput,
        "[handwriting] {}: expected lines of {} points or more, got none", all.origin,
        kFewestPoints);
  if (unfit > 0) {
    corpus.skipped.push_back(
        {unfit, fmt::format("fewer than {} points, or a jump", kFewestPoints), "lines"});
  }
  corpus.origin = all.origin;
  corpus.put(split, std::move(lines));
  return corpus;
}

HandwritingCorpus read_iam(const fs::path& folder) {
  HandwritingCorpus corpus{{.name = "handwriting", .origin = ""}, Alphabet::of_letters()};
  AllLines all = read_all(folder, corpus.alphabet);
  const bool listed = bool(all.portion_of);
  const PortionOf portion_of = listed ? all.portion_of : split_by_text(all);
  const std::int64_t count = std::ssize(all.lines) + all.unmatched;
  std::array<WrittenLines, 3> parts;  // by task::Split
  for (IamLine& line : all.lines) {
    parts[std::size_t(portion_of(line))].push_back(std::move(line.line));
  }
  const OffsetScale scale = OffsetScale::of(parts[0]);
  std::int64_t skipped = all.unmatched;
  for (WrittenLines& part : parts) skipped += leave_out(part, scale);
  if (listed) parts[2] = parts[1];
  check(std::ranges::none_of(parts, &WrittenLines::empty), ErrorKind::kBadInput,
        "[handwriting] {}: expected lines of {} points or more for training, validation and "
        "testing, got too few",
        all.origin, kFewestPoints);
  corpus.train = std::move(parts[0]);
  corpus.valid = std::move(parts[1]);
  corpus.test = [test = std::move(parts[2])] { return test; };
  corpus.origin = fmt::format("{}, {} of {} lines left out", all.origin, skipped, count);
  return corpus;
}

}  // namespace keel::models
