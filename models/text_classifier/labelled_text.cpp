#include "models/text_classifier/labelled_text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "frontend/io/json_text.h"
#include "frontend/text/csv.h"
#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxLabelledBytes = std::int64_t{1} << 30;
constexpr std::size_t kLongestLabel = 200, kShown = 60;

std::string_view without_blanks_around(std::string_view text) {
  while (!text.empty() && text::is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && text::is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool has_words(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") != text.npos; }

bool is_control(char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }

// The beginning of what came, on one line.
std::string shown(std::string_view got) {
  std::string text(text::clipped(got, kShown));
  std::ranges::replace_if(text, is_control, '?');
  return text;
}

// Puts rows together, with a message for each that is not one.
class LabelledRowsOf {
 public:
  LabelledRowsOf(std::string file, std::string_view form) : file_(std::move(file)), form_(form) {}

  [[noreturn]] void refuse(std::int64_t line, std::string_view got) const {
    fail(ErrorKind::kBadInput, "[text_classifier] {}: expected {}, got {}",
         text::place(file_, line), form_, got);
  }
  [[noreturn]] void refuse_quoted(std::int64_t line, std::string_view got) const {
    refuse(line, got.empty() ? "an empty line" : fmt::format("'{}'", shown(got)));
  }
  void add(std::string_view label, std::string text, std::int64_t line) {
    label = without_blanks_around(label);
    if (label.empty()) refuse(line, "an empty label");
    if (!has_words(text)) {
      refuse(line, fmt::format("the label '{}' and no text", shown(label)));
    }
    check(label.size() <= kLongestLabel && std::ranges::none_of(label, is_control),
          ErrorKind::kBadInput,
          "[text_classifier] {}: expected a label of at most {} bytes without control characters, "
          "got '{}' ({} bytes)",
          text::place(file_, line), kLongestLabel, shown(label), label.size());
    rows_.push_back({std::string(label), std::move(text), line});
  }
  // Throws where there is none.
  std::vector<LabelledText> take() {
    check(!rows_.empty(), ErrorKind::kBadInput,
          "[text_classifier] {}: expected {}, got no such line", file_, form_);
    return std::move(rows_);
  }

 private:
  std::string file_;
  std::string_view form_;
  std::vector<LabelledText> rows_;
};

// "(3 (2 The) ..." may be the text of nobody's, but it begins files of SST.
bool is_tree(std::string_view line) {
  return line.size() > 4 && line[0] == '(' && line[1] >= '0' && line[1] <= '4' && line[2] == ' ' &&
         line.ends_with(')');
}

std::vector<LabelledText> read_lines(std::string_view content, const std::string& file,
                                     bool needs_tab) {
  LabelledRowsOf rows(file, needs_tab ? "LABEL, a tab and TEXT" : "LABEL, a blank or tab and TEXT");
  text::Lines lines(content);
  while (const std::optional<text::Line> line = lines.next()) {
    if (line->number == 1 && is_tree(line->text)) {
      rows.refuse(line->number, "a tree of SST, which model.task=sst5 reads");
    }
    const std::size_t end = line->text.find_first_of(needs_tab ? "\t" : " \t");
    if (end == line->text.npos) rows.refuse_quoted(line->number, line->text);
    rows.add(line->text.substr(0, end), std::string(line->text.substr(end + 1)), line->number);
  }
  return rows.take();
}

// The place of a column; nothing where there are none or several of that name.
std::optional<std::size_t> column_of(const text::CsvRecord& header, std::string_view name) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    if (text::lower_case(without_blanks_around(header.fields[i])) != name) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

std::vector<LabelledText> read_csv(std::string_view content, const std::string& file) {
  text::CsvReader reader(content, "[text_classifier] " + file);
  const std::optional<text::CsvRecord> header = reader.next();
  LabelledRowsOf header_rows(
      file, "a first line that names the columns, label and text once each, with commas between");
  const auto label = column_of(*header, "label"), text = column_of(*header, "text");
  if (!label || !text)
    header_rows.refuse_quoted(1, fmt::format("{}", fmt::join(header->fields, ",")));
  const std::size_t columns = header->fields.size();
  const std::string form =
      fmt::format("{} fields with commas between, a label and a text among them", columns);
  LabelledRowsOf rows(file, form);
  while (std::optional<text::CsvRecord> record = reader.next()) {
    const bool is_empty = record->fields.size() == 1 && record->fields[0].empty();
    if (is_empty) rows.refuse(record->line, "an empty line");
    if (record->fields.size() != columns) {
      rows.refuse(record->line, fmt::format("{}", record->fields.size()));
    }
    rows.add(record->fields[*label], std::move(record->fields[*text]), record->line);
  }
  return rows.take();
}

// Names the value that cannot be taken, where there is one.
[[noreturn]] void refuse_json(std::string_view line, const std::string& place,
                              const LabelledRowsOf& rows, std::int64_t number) {
  const auto label = io::json_value(line, "label"), text = io::json_value(line, "text");
  if (!label || !text) rows.refuse_quoted(number, line);
  check(io::json_word(line, "label").has_value(), ErrorKind::kBadInput,
        "[text_classifier] {}: expected a label that is a text or a whole number, such as \"1\" or "
        "1, got {}",
        place, shown(*label));
  fail(ErrorKind::kBadInput, "[text_classifier] {}: expected a text in quotation marks, got {}",
       place, shown(*text));
}

std::vector<LabelledText> read_json_lines(std::string_view content, const std::string& file) {
  LabelledRowsOf rows(file, "a JSON object {\"label\": ..., \"text\": ...} with each key once");
  text::Lines lines(content);
  while (const std::optional<text::Line> line = lines.next()) {
    const auto label = io::json_word(line->text, "label");
    auto text = io::json_text(line->text, "text");
    if (!label || !text) {
      refuse_json(line->text, text::place(file, line->number), rows, line->number);
    }
    rows.add(*label, std::move(*text), line->number);
  }
  return rows.take();
}

// "x.csv.gz" ends in ".csv".
std::string ending_of(const fs::path& path) {
  const std::string last = path.extension();
  return last == ".gz" || last == ".xz" ? path.stem().extension() : path.extension();
}

}  // namespace

LabelledFile read_labelled(const fs::path& path) {
  const std::string file = path.string(), ending = ending_of(path);
  if (ending == ".jsonl") {
    return {read_json_lines(text::read_text(path, kMaxLabelledBytes), file), false};
  }
  const text::WesternText read = text::read_western_text(path, kMaxLabelledBytes);
  return {
      ending == ".csv" ? read_csv(read.utf8, file) : read_lines(read.utf8, file, ending == ".tsv"),
      read.was_windows_1252};
}

}  // namespace keel::models
