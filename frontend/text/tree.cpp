#include "frontend/text/tree.h"

#include <algorithm>
#include <charconv>

#include "frontend/text/lines.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

// The content of an open bracket so far.
enum class Inside : std::uint8_t { kLabel, kWord, kTrees };

bool ends_word(char c) { return is_blank(c) || c == '(' || c == ')'; }

class TreeReader {
 public:
  TreeReader(std::string_view line, std::int32_t labels, std::string_view where)
      : line_(line), where_(where), labels_(labels) {}

  LabelledSentence read() {
    skip_blanks();
    open();
    while (!open_.empty()) {
      skip_blanks();
      if (next_is('(')) {
        if (open_.back() == Inside::kWord) fail_here("')' after a word");
        open_.back() = Inside::kTrees;
        open();
      } else if (next_is(')')) {
        if (open_.back() == Inside::kLabel) fail_here("a word or a tree after the label");
        open_.pop_back();
        ++at_;
      } else {
        leaf();
      }
    }
    skip_blanks();
    if (at_ < line_.size()) fail_here("nothing after the tree");
    return std::move(sentence_);
  }

 private:
  bool next_is(char c) const { return at_ < line_.size() && line_[at_] == c; }

  void skip_blanks() {
    while (at_ < line_.size() && is_blank(line_[at_])) ++at_;
  }

  // The characters up to the next blank or bracket.
  std::string_view peek() const {
    const auto* const begin = line_.data() + at_;
    return {begin, std::find_if(begin, line_.data() + line_.size(), ends_word)};
  }

  // A bracket and its label.
  void open() {
    if (!next_is('(')) fail_here("'('");
    if (std::ssize(open_) == kMaxTreeDepth) {
      fail_here(fmt::format("a tree of at most {} levels", kMaxTreeDepth));
    }
    ++at_;
    skip_blanks();
    const std::string_view text = peek();
    std::int32_t label = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
    if (error != std::errc() || end != text.data() + text.size() || label < 0 || label >= labels_) {
      fail_here(fmt::format("a label of 0 to {}", labels_ - 1));
    }
    if (open_.empty()) sentence_.label = label;
    open_.push_back(Inside::kLabel);
    at_ += text.size();
  }

  void leaf() {
    const std::string_view word = peek();
    if (word.empty()) fail_here(fmt::format("{} more ')'", open_.size()));
    if (open_.back() == Inside::kWord) fail_here("')' after a word");
    if (open_.back() == Inside::kTrees) fail_here("'(' or ')' after a tree");
    open_.back() = Inside::kWord;
    sentence_.words.emplace_back(word_of_leaf(word));
    at_ += word.size();
  }

  [[noreturn]] void fail_here(std::string_view expected) const {
    std::string got = "the end";
    if (at_ < line_.size()) {
      const std::string_view word = peek();
      got = fmt::format("'{}'", word.empty() ? line_.substr(at_, 1) : clipped(word, 40));
    }
    fail(ErrorKind::kBadInput, "[tree] {}: expected {} at byte {}, got {}", where_, expected,
         at_ + 1, got);
  }

  std::string_view line_, where_;
  std::int32_t labels_;
  std::size_t at_ = 0;
  std::vector<Inside> open_;  // one for each open bracket, the outermost first
  LabelledSentence sentence_;
};

}  // namespace

LabelledSentence read_tree(std::string_view line, std::int32_t labels, std::string_view where) {
  return TreeReader(line, labels, where).read();
}

std::string_view word_of_leaf(std::string_view leaf) {
  if (leaf == "-LRB-" || leaf == "-lrb-") return "(";
  if (leaf == "-RRB-" || leaf == "-rrb-") return ")";
  return leaf;
}

}  // namespace keel::text
