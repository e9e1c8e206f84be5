#include "models/dependency_parser/conll.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "models/dependency_parser/conll_rows.h"
#include "models/dependency_parser/tree.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

std::optional<std::int32_t> whole_number(std::string_view text) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

class ConllReader {
 public:
  ConllReader(Treebank& treebank, const ConllOptions& options)
      : treebank_(treebank),
        options_(options),
        layout_(layout_of(*treebank.text)),
        block_(treebank.text->data()) {}

  void read() {
    text::Lines lines(*treebank_.text);
    while (const auto line = lines.next()) {
      line_ = line->number;
      if (is_blank_line(line->text)) finish(end_of(line->text));
      if (is_token(line->text, layout_)) take(line->text);
    }
    const char* end = treebank_.text->data() + treebank_.text->size();
    finish(end);
    if (treebank_.sentences.empty()) refuse(line_, "a sentence", "none");
    // The lines after the last sentence belong to it.
    std::string_view& last = treebank_.sentences.back().block;
    last = {last.data(), static_cast<std::size_t>(end - last.data())};
  }

 private:
  [[noreturn]] void refuse(std::int64_t line, std::string_view expected,
                           std::string_view got) const {
    fail(ErrorKind::kBadInput, "[conll] {}: expected {}, got {}", text::place(treebank_.name, line),
         expected, got);
  }
  static std::string quoted(std::string_view text) {
    return fmt::format("'{}'", text::clipped(text, 60));
  }
  // A name of a tag or label.
  void expect_name(std::string_view what, std::string_view name) const {
    if (!name.empty() && name.find(' ') == name.npos) return;
    refuse(line_, fmt::format("a {} without blanks", what), quoted(name));
  }

  // After the end of a line.
  const char* end_of(std::string_view line) const {
    const char* const end = treebank_.text->data() + treebank_.text->size();
    const char* at = std::find(line.data() + line.size(), end, '\n');
    return at == end ? end : at + 1;
  }

  void take(std::string_view row) {
    const Columns columns(row);
    if (columns.count != layout_.columns) {
      refuse(line_, fmt::format("{} columns with tabs between them", layout_.columns),
             fmt::format("{}", columns.count));
    }
    if (sentence_.forms.empty()) sentence_.line = line_;
    if (std::ssize(sentence_.forms) == kMostTokens) {
      refuse(line_, fmt::format("at most {} tokens in a sentence", kMostTokens), "more");
    }
    if (layout_.has_ids()) take_id(columns.at[layout_.id]);
    take_form(columns.at[layout_.form]);
    const std::string_view tag = columns.at[layout_.tag];
    take_tag(tag == "_" && layout_.has_ids() ? columns.at[layout_.coarse_tag] : tag);
    if (layout_.has_ids()) sentence_.coarse_tags.push_back(columns.at[layout_.coarse_tag]);
    if (options_.has_heads) take_head(columns);
    lines_.push_back(line_);
  }

  void take_id(std::string_view id) {
    const std::int32_t number = sentence_.size() + 1;
    if (whole_number(id) != number) refuse(line_, fmt::format("the id {}", number), quoted(id));
  }

  void take_form(std::string_view form) {
    if (form.empty()) refuse(line_, "a form", "an empty column");
    sentence_.forms.push_back(form);
  }

  void take_tag(std::string_view tag) {
    expect_name("tag", tag);
    sentence_.tags.push_back(tag);
  }

  void take_head(const Columns& columns) {
    const std::string_view text = columns.at[layout_.head];
    const std::optional<std::int32_t> head = whole_number(text);
    if (!head || *head < 0) refuse(line_, "a head of 0 or more", quoted(text));
    const std::string_view unlabelled = *head == 0 ? "root" : "dep";
    const std::string_view label = layout_.has_ids() ? columns.at[layout_.label] : unlabelled;
    expect_name("label", label);
    sentence_.heads.push_back(*head);
    sentence_.labels.push_back(label);
  }

  // Ends the sentence, if one has begun, with the block up to `end`.
  void finish(const char* end) {
    if (sentence_.forms.empty()) return;
    check_heads();
    sentence_.block = {block_, static_cast<std::size_t>(end - block_)};
    block_ = end;
    treebank_.sentences.push_back(std::exchange(sentence_, {}));
    lines_.clear();
  }

  void check_heads() const {
    const std::vector<std::int32_t>& heads = sentence_.heads;
    for (std::size_t i = 0; i < heads.size(); ++i) {
      if (heads[i] <= sentence_.size()) continue;
      refuse(lines_[i], fmt::format("a head of 0 to {}", sentence_.size()),
             fmt::format("{}", heads[i]));
    }
    if (!options_.is_conllu || heads.empty()) return;
    const TreeFault fault = tree_fault(heads);
    if (fault == TreeFault::kCycle)
      refuse(sentence_.line, "heads that lead to the root", "a cycle");
    if (fault == TreeFault::kRoots) {
      refuse(sentence_.line, "one root in the sentence",
             fmt::format("{}", std::ranges::count(heads, 0)));
    }
  }

  Treebank& treebank_;
  const ConllOptions& options_;
  const RowLayout& layout_;
  const char* block_;  // where the block of the next sentence begins
  std::int64_t line_ = 0;
  Sentence sentence_;
  std::vector<std::int64_t> lines_;  // of the sentence's tokens
};

// Appends a row with another head and label, and without other arcs. Of CoNLL-X these are a number,
// PHEAD, and a label in the column after it.
void append_row(std::string& out, std::string_view row, const RowLayout& layout,
                std::string_view head, std::string_view label) {
  const Columns columns(row);
  const std::size_t others = layout.other_arcs;
  const bool has_label = layout.has_ids() && whole_number(columns.at[others]).has_value();
  for (std::size_t column = 0; column < columns.count; ++column) {
    if (column > 0) out += '\t';
    if (column == layout.head) {
      out += head;
    } else if (column == layout.label) {
      out += label;
    } else {
      const bool is_arc = column == others || (has_label && column == others + 1);
      out += is_arc ? "_" : columns.at[column];
    }
  }
}

}  // namespace

Treebank read_conll(std::string text, std::string name, const ConllOptions& options) {
  Treebank treebank{std::move(name), std::make_shared<const std::string>(std::move(text)), {}};
  ConllReader(treebank, options).read();
  return treebank;
}

std::string with_arcs(const Sentence& sentence, std::span<const std::int32_t> heads,
                      std::span<const std::string_view> labels) {
  const RowLayout& layout = layout_of(sentence.block);
  std::string out;
  std::size_t token = 0;
  for (std::string_view rest = sentence.block; !rest.empty();) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    const std::string_view end = line.ends_with('\r') ? "\r" : "";
    line.remove_suffix(end.size());
    if (is_empty_node(line, layout)) continue;
    if (is_token(line, layout)) {
      append_row(out, line, layout, fmt::format("{}", heads[token]), labels[token]);
      ++token;
    } else {
      out += line;
    }
    out += end;
    if (!rest.empty()) out += '\n';
  }
  return out;
}

}  // namespace keel::models
