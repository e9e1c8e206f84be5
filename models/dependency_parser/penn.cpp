#include "models/dependency_parser/penn.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "frontend/io/packed_file.h"
#include "frontend/io/visible_files.h"
#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/tree.h"
#include "frontend/text/utf8.h"
#include "models/dependency_parser/head_rules.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxPennBytes = 1 << 28;

// A bracket that is not closed yet.
struct OpenPhrase {
  std::string_view label;
  std::vector<Constituent> parts;
  bool is_word = false;    // it has a word and is complete
  bool is_empty = true;    // nothing has come after its label
  bool is_silent = false;  // its word is one that is not said
};

struct PennWord {
  std::string_view form, tag;
  std::int32_t head = 0;
  std::string_view label = "ROOT";
};

// Reads the trees of a text, without recursion, and gives each word its head as soon as the phrase
// closes that has both.
class PennReader {
 public:
  PennReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::string read() {
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      if (text_[at_] == '(') {
        open();
      } else if (text_[at_] == ')') {
        close();
      } else {
        take_word();
      }
    }
    if (!open_.empty()) fail_here(fmt::format("{} more ')'", open_.size()));
    check(!rows_.empty(), ErrorKind::kBadInput, "[penn] {}: expected a tree, got none", file_);
    return std::move(rows_);
  }

 private:
  static bool is_space(char c) { return text::is_blank(c) || c == '\n' || c == '\r'; }

  void skip_blanks() {
    for (; at_ < text_.size() && is_space(text_[at_]); ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
  }

  // The characters up to the next blank or bracket.
  std::string_view peek() const {
    std::size_t end = at_;
    while (end < text_.size() && !is_space(text_[end]) && text_[end] != '(' && text_[end] != ')') {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }

  [[noreturn]] void fail_here(std::string_view expected) const {
    std::string got = "the end";
    if (at_ < text_.size()) {
      const std::string_view word = peek();
      got = fmt::format("'{}'", word.empty() ? text_.substr(at_, 1) : text::clipped(word, 40));
      if (is_space(text_[at_])) got = "a blank";
    }
    fail(ErrorKind::kBadInput, "[penn] {}: expected {}, got {}", text::place(file_, line_),
         expected, got);
  }

  // A bracket with its label, which only the outermost one may lack.
  void open() {
    if (!open_.empty()) {
      if (open_.back().is_word) fail_here("')' after a word");
      open_.back().is_empty = false;
    }
    if (std::ssize(open_) == text::kMaxTreeDepth) {
      fail_here(fmt::format("a tree of at most {} levels", text::kMaxTreeDepth));
    }
    ++at_;
    const std::string_view label = peek();
    if (label.empty() && !open_.empty()) fail_here("a label after '('");
    open_.push_back({label, {}});
    at_ += label.size();
  }

  void take_word() {
    if (open_.empty()) fail_here("'('");
    OpenPhrase& phrase = open_.back();
    if (phrase.is_word) fail_here("')' after a word");
    if (!phrase.is_empty) fail_here("'(' or ')' after a phrase");
    if (phrase.label.empty()) fail_here("'(' in a bracket without a label");
    const std::string_view word = peek();
    phrase.is_word = true;
    phrase.is_empty = false;
    phrase.is_silent = phrase.label == "-NONE-";
    if (!phrase.is_silent) {
      if (std::ssize(words_) == kMostTokens) {
        fail_here(fmt::format("a sentence of at most {} words", kMostTokens));
      }
      words_.push_back({word, phrase.label});
    }
    at_ += word.size();
  }

  void close() {
    if (open_.empty()) fail_here("'('");
    if (open_.back().is_empty) fail_here("a word or a phrase before ')'");
    const OpenPhrase phrase = std::move(open_.back());
    open_.pop_back();
    ++at_;
    const bool is_said = phrase.is_word ? !phrase.is_silent : !phrase.parts.empty();
    if (is_said) attach(phrase);
    if (open_.empty()) end_sentence();
  }

  // Joins the parts of a phrase by arcs, and makes it a part of the one around it.
  void attach(const OpenPhrase& phrase) {
    if (phrase.is_word) {
      add_part({phrase.label, "", /*is_word=*/true, static_cast<std::int32_t>(words_.size())});
      return;
    }
    const std::string_view category = category_of(phrase.label);
    const std::size_t head = head_place(category, phrase.parts);
    for (std::size_t i = 0; i < phrase.parts.size(); ++i) {
      if (i == head) continue;
      PennWord& word = words_[static_cast<std::size_t>(phrase.parts[i].head - 1)];
      word.head = phrase.parts[head].head;
      word.label = arc_label(category, phrase.parts, head, i);
    }
    add_part({category, functions_of(phrase.label), /*is_word=*/false, phrase.parts[head].head});
  }

  void add_part(const Constituent& part) {
    if (!open_.empty()) open_.back().parts.push_back(part);
  }

  void end_sentence() {
    check(!words_.empty(), ErrorKind::kBadInput,
          "[penn] {}: expected a tree with a word, got one that says nothing",
          text::place(file_, line_));
    std::int32_t id = 0;
    for (const PennWord& word : words_) {
      rows_ += fmt::format("{}\t{}\t_\t{}\t{}\t_\t{}\t{}\t_\t_\n", ++id, word.form, word.tag,
                           word.tag, word.head, word.label);
    }
    rows_ += '\n';
    words_.clear();
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::vector<OpenPhrase> open_;  // the outermost first
  std::vector<PennWord> words_;   // of the tree that is read
  std::string rows_;
};

// The files of a section, in the order of their names; a plain file hides its packed self.
std::vector<fs::path> files_of_section(const fs::path& folder, int section) {
  std::set<std::string> names;
  std::error_code error;
  const fs::path place = folder / fmt::format("{:02}", section);
  for (const fs::path& entry : io::visible_entries(place, error)) {
    const std::string ending = io::lower_ending(entry);
    const fs::path name = ending == ".gz" || ending == ".xz" ? entry.stem() : entry.filename();
    if (io::lower_ending(name) == ".mrg") names.insert(name);
  }
  std::vector<fs::path> files;
  for (const std::string& name : names) files.push_back(*io::find_packed(place / name));
  return files;
}

std::pair<int, int> sections_of(task::Split split) {
  if (split == task::Split::kTrain) return {2, 21};
  return split == task::Split::kValid ? std::pair{22, 22} : std::pair{23, 23};
}

}  // namespace

std::string rows_of_penn_trees(std::string_view text, const std::string& file) {
  return PennReader(text, file).read();
}

std::optional<fs::path> find_penn_sections(const fs::path& folder) {
  for (const char* own :
       {"", "wsj", "treebank", "treebank/wsj", "parsed/mrg/wsj", "combined/wsj"}) {
    const fs::path place = own[0] == '\0' ? folder : folder / own;
    for (const int section : {2, 22, 23}) {
      if (!files_of_section(place, section).empty()) return place;
    }
  }
  return std::nullopt;
}

Treebank read_penn_sections(const fs::path& folder, task::Split split) {
  const auto [first, last] = sections_of(split);
  std::string rows;
  for (int section = first; section <= last; ++section) {
    const std::vector<fs::path> files = files_of_section(folder, section);
    check(
        !files.empty(), ErrorKind::kIo,
        "[penn] {}: expected the sections {:02} to {:02} with files wsj_*.mrg, plain, .gz or .xz, "
        "got none of section {:02}",
        folder.string(), first, last, section);
    for (const fs::path& file : files) {
      rows += rows_of_penn_trees(text::read_text(file, kMaxPennBytes), file.string());
    }
  }
  return read_conll(std::move(rows),
                    fmt::format("{}, sections {:02} to {:02}", folder.string(), first, last), {});
}

}  // namespace keel::models
