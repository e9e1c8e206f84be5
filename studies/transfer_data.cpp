#include "studies/transfer_data.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "frontend/io/packed_file.h"
#include "frontend/text/line_reader.h"
#include "frontend/text/lines.h"
#include "frontend/text/moses_tokenizer.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::study {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxBytes = 64 << 20;

struct TwoFiles {
  const char *name, *zero, *one;
};
constexpr TwoFiles kSets[] = {{"MR", "rt-polarity.neg", "rt-polarity.pos"},
                              {"CR", "custrev.neg", "custrev.pos"},
                              {"SUBJ", "subj.objective", "subj.subjective"},
                              {"MPQA", "mpqa.neg", "mpqa.pos"}};

// FILE, or FILE.gz or FILE.xz, in the folder or in one of these below it.
std::optional<fs::path> find_in(const fs::path& folder, const std::vector<std::string>& below,
                                const std::string& file) {
  for (const std::string& part : below) {
    if (const auto found = io::find_packed(folder / part / file)) return found;
  }
  return std::nullopt;
}

// Sentences as the text has them that networks are trained on.
std::string in_tokens(std::string_view sentence) {
  static const text::MosesTokenizer tokenize({.escape = false});
  return tokenize(sentence);
}

void append_lines(LabelledLines& set, const fs::path& path, std::int32_t label) {
  const text::WesternText read = text::read_western_text(path, kMaxBytes);
  text::Lines lines(read.utf8);
  while (const std::optional<text::Line> line = lines.next()) {
    set.lines.push_back(in_tokens(line->text));
    set.labels.push_back(label);
  }
}

constexpr std::array<const char*, 3> kSickFiles = {"SICK_train.txt", "SICK_trial.txt",
                                                   "SICK_test_annotated.txt"};

std::optional<fs::path> find_sick(const fs::path& folder, const char* file) {
  return find_in(folder, {"", "sick", "sentences/sick"}, file);
}

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find('\t', begin), line.size());
    columns.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return columns;
}

double score_of(std::string_view text, const std::string& where) {
  double score = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), score);
  check(error == std::errc() && end == text.data() + text.size() && score >= 1 && score <= 5,
        ErrorKind::kBadInput, "[transfer] {}: expected a score of 1 to 5, got '{}'", where,
        text::clipped(text, 40));
  return score;
}

RatedLines read_rated(const fs::path& path) {
  RatedLines rated;
  text::LineReader reader(path);
  while (const std::optional<text::Line> line = reader.next()) {
    if (line->number == 1) continue;  // headings
    const std::string where = text::place(reader.name(), line->number);
    const std::vector<std::string_view> columns = columns_of(line->text);
    check(columns.size() == 5, ErrorKind::kBadInput,
          "[transfer] {}: expected 5 columns with tabs between, got {}", where, columns.size());
    rated.first.push_back(in_tokens(columns[1]));
    rated.second.push_back(in_tokens(columns[2]));
    rated.scores.push_back(score_of(columns[3], where));
  }
  check(rated.scores.size() >= 2, ErrorKind::kBadInput, "[transfer] {}: expected pairs, got {}",
        path.string(), rated.scores.size());
  return rated;
}

}  // namespace

std::vector<LabelledLines> read_labelled_lines(const fs::path& folder) {
  std::vector<LabelledLines> sets;
  for (const TwoFiles& files : kSets) {
    const auto zero = find_in(folder, {"", "sentences"}, files.zero),
               one = find_in(folder, {"", "sentences"}, files.one);
    if (!zero || !one) continue;
    LabelledLines& set = sets.emplace_back();
    set.name = files.name;
    append_lines(set, *zero, 0);
    append_lines(set, *one, 1);
  }
  return sets;
}

bool has_sick(const fs::path& folder) {
  for (const char* file : kSickFiles) {
    if (!find_sick(folder, file)) return false;
  }
  return true;
}

std::vector<std::string> transfer_quantities(const fs::path& folder) {
  std::vector<std::string> names;
  for (const LabelledLines& set : read_labelled_lines(folder)) {
    names.push_back(set.name + ", accuracy %");
  }
  if (has_sick(folder)) {
    names.insert(names.end(), {"SICK, Pearson", "SICK, Spearman", "SICK, MSE"});
  }
  return names;
}

Sick read_sick(const fs::path& folder) {
  return {read_rated(*find_sick(folder, kSickFiles[0])),
          read_rated(*find_sick(folder, kSickFiles[1])),
          read_rated(*find_sick(folder, kSickFiles[2]))};
}

}  // namespace keel::study
