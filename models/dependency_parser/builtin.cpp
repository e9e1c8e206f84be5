#include "models/dependency_parser/builtin.h"

#include <initializer_list>
#include <iterator>
#include <string_view>

#include "frontend/data/draw.h"

namespace keel::models {
namespace {

constexpr int kCategoryWords = 40;  // of a category
constexpr int kDeepest = 4;         // arcs from the verb to a noun
constexpr double kPreferred = 0.9;  // of the two places of a phrase

struct Category {
  std::string_view word, tag;
};
constexpr Category kVerb{"verb", "VB"}, kNoun{"noun", "NN"}, kDeterminer{"det", "DT"},
    kAdjective{"adj", "JJ"}, kAdverb{"adv", "RB"}, kPreposition{"prep", "IN"};

// 0, 1, ... with these probabilities; the last one takes what is left.
int draw_among(data::Draw& draw, std::initializer_list<double> probabilities) {
  double u = draw.uniform();
  int choice = 0;
  for (const double p : probabilities) {
    if (u < p) return choice;
    u -= p;
    ++choice;
  }
  return choice - 1;
}

struct CfgWord {
  std::string form;
  std::string_view tag, label;
  int head = 0, depth = 0;  // depth: arcs from the verb, of nouns
};

class CfgWriter {
 public:
  explicit CfgWriter(const data::Draw& draw) : draw_(draw) {}

  // Words are numbered from 1.
  std::vector<CfgWord> write() {
    const int subject = noun_phrase("nsubj", 1);
    if (draw_.chance(0.2)) phrase(subject, 1);
    const bool has_adverb = draw_.chance(0.5), adverb_is_left = draw_.chance(0.5);
    if (has_adverb && adverb_is_left) add(kAdverb, "advmod");
    const int adverb = has_adverb && adverb_is_left ? size() : 0;
    verb_rank_ = rank();
    verb_ = add(kVerb, "root", verb_rank_);
    word(verb_).head = 0;
    word(subject).head = verb_;
    if (adverb > 0) word(adverb).head = verb_;
    for (int n = draw_among(draw_, {.2, .6, .2}); n > 0; --n)
      word(noun_phrase("obj", 1)).head = verb_;
    if (has_adverb && !adverb_is_left) word(add(kAdverb, "advmod")).head = verb_;
    for (int n = draw_among(draw_, {.1, .3, .3, .3}); n > 0; --n) attached_phrase();
    words_.push_back({".", ".", "punct", verb_, 0});
    return words_;
  }

 private:
  int rank() {
    static const data::Zipf kZipf(kCategoryWords);
    return kZipf.rank(draw_);
  }
  int size() const { return static_cast<int>(words_.size()); }
  CfgWord& word(int number) { return words_[static_cast<std::size_t>(number - 1)]; }

  // Returns the number of the word.
  int add(const Category& category, std::string_view label) { return add(category, label, rank()); }
  int add(const Category& category, std::string_view label, int rank) {
    words_.push_back({fmt::format("{}{}", category.word, rank), category.tag, label, 0, 0});
    return size();
  }

  // Returns the number of the noun, whose head is still to be set.
  int noun_phrase(std::string_view label, int depth) {
    const int first = size() + 1;
    if (draw_.chance(0.7)) add(kDeterminer, "det");
    for (int n = draw_among(draw_, {.6, .3, .1}); n > 0; --n) add(kAdjective, "amod");
    const int noun = add(kNoun, label);
    for (int number = first; number < noun; ++number) word(number).head = noun;
    word(noun).depth = depth;
    return noun;
  }

  // A preposition and its noun, which hang from a word at that depth.
  void phrase(int head, int depth) { phrase(head, depth, rank()); }
  void phrase(int head, int depth, int rank) {
    const int preposition = add(kPreposition, "prep", rank);
    word(preposition).head = head;
    word(noun_phrase("pobj", depth + 2)).head = preposition;
  }

  void attached_phrase() {
    const CfgWord& last = words_.back();
    const bool may_be_noun = last.tag == kNoun.tag && last.depth + 2 <= kDeepest;
    const int number = rank(), kind = verb_rank_ % 3;
    const bool prefers_verb = kind == 2 ? number % 2 == 0 : kind == 0;
    const bool takes_preferred = draw_.chance(kPreferred);
    const bool takes_verb = !may_be_noun || prefers_verb == takes_preferred;
    takes_verb ? phrase(verb_, 0, number) : phrase(size(), last.depth, number);
  }

  data::Draw draw_;
  std::vector<CfgWord> words_;
  int verb_ = 0, verb_rank_ = 0;
};

}  // namespace

Treebank make_cfg_dep(std::uint64_t seed, task::Split split) {
  const bool trains = split == task::Split::kTrain;
  const std::string part = trains ? "train" : split == task::Split::kValid ? "valid" : "test";
  const std::uint32_t stream = stream_of("dependency_parser.cfg-dep." + part);
  std::string text;
  for (std::uint32_t i = 0; i < (trains ? 8000 : 500); ++i) {
    int id = 0;
    for (const CfgWord& word : CfgWriter(data::Draw(seed, stream, i)).write()) {
      fmt::format_to(std::back_inserter(text), "{}\t{}\t_\t{}\t{}\t_\t{}\t{}\t_\t_\n", ++id,
                     word.form, word.tag, word.tag, word.head, word.label);
    }
    text += '\n';
  }
  return read_conll(std::move(text), fmt::format("cfg-dep {}, seed {}", part, seed),
                    {.is_conllu = true});
}

}  // namespace keel::models
