#include "models/dependency_parser/head_rules.h"

#include <algorithm>
#include <array>

namespace keel::models {
namespace {

enum class HeadSide : std::uint8_t { kLeft, kRight };

// The categories stand in order with blanks between; those with | between count as one.
struct HeadRule {
  std::string_view phrase;
  HeadSide side;
  std::string_view categories;
};

constexpr auto kLeft = HeadSide::kLeft, kRight = HeadSide::kRight;
constexpr std::array<HeadRule, 26> kHeadRules = {{
    {"ADJP", kRight, "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB"},
    {"ADVP", kLeft, "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"},
    {"CONJP", kLeft, "CC RB IN"},
    {"FRAG", kLeft, ""},
    {"INTJ", kRight, ""},
    {"LST", kLeft, "LS :"},
    {"NAC", kRight, "NN|NNS|NNP|NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW"},
    {"NP", kRight, "POS|NN|NNP|NNPS|NNS NX JJR CD JJ JJS RB QP NP"},
    {"NX", kRight, "POS|NN|NNP|NNPS|NNS NX JJR CD JJ JJS RB QP NP"},
    {"PP", kLeft, "IN TO VBG VBN RP FW"},
    {"PRN", kRight, ""},
    {"PRT", kLeft, "RP"},
    {"QP", kRight, "$ IN NNS NN JJ RB DT CD NCD QP JJR JJS"},
    {"RRC", kLeft, "VP NP ADVP ADJP PP"},
    {"S", kRight, "TO IN VP S SBAR ADJP UCP NP"},
    {"SBAR", kRight, "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG"},
    {"SBARQ", kRight, "SQ S SINV SBARQ FRAG"},
    {"SINV", kRight, "VBZ VBD VBP VB MD VP S SINV ADJP NP"},
    {"SQ", kRight, "VBZ VBD VBP VB MD VP SQ"},
    {"UCP", kLeft, ""},
    {"VP", kLeft, "VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP"},
    {"WHADJP", kRight, "CC WRB JJ ADJP"},
    {"WHADVP", kLeft, "CC WRB"},
    {"WHNP", kRight, "WDT WP WP$ WHADJP WHPP WHNP"},
    {"WHPP", kLeft, "IN TO FW"},
    {"X", kRight, ""},
}};

// The rule of a phrase without one is that of X.
const HeadRule& rule_of(std::string_view phrase) {
  const auto* const found = std::ranges::find(kHeadRules, phrase, &HeadRule::phrase);
  return found == kHeadRules.end() ? kHeadRules.back() : *found;
}

// Whether a list with these signs between has the element.
bool lists(std::string_view list, char between, std::string_view element) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(between), list.size());
    if (list.substr(0, end) == element) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// The outermost part on a side for which `fits` holds; the number of parts if it holds for none.
template <class Fits>
std::size_t outermost(std::span<const Constituent> parts, HeadSide side, const Fits& fits) {
  const std::size_t n = parts.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t place = side == kLeft ? i : n - 1 - i;
    if (fits(parts[place])) return place;
  }
  return n;
}

bool is_one_of(std::string_view category, std::string_view list) {
  return lists(list, ' ', category);
}

bool has_function(const Constituent& part, std::string_view function) {
  return lists(part.functions, '-', function);
}

bool is_verb(std::string_view tag) { return tag.starts_with("VB") || tag == "MD"; }

bool is_adverbial(const Constituent& part) {
  constexpr std::array<std::string_view, 8> kAdverbial = {"ADV", "BNF", "DIR", "EXT",
                                                          "LOC", "MNR", "PRP", "TMP"};
  return std::ranges::any_of(kAdverbial,
                             [&](std::string_view name) { return has_function(part, name); });
}

}  // namespace

std::string_view category_of(std::string_view label) {
  if (label.starts_with('-')) return label;
  return label.substr(0, label.find_first_of("-=|"));
}

std::string_view functions_of(std::string_view label) {
  return label.substr(category_of(label).size());
}

bool is_punctuation_tag(std::string_view tag) { return is_one_of(tag, "`` '' , . :"); }

std::size_t head_place(std::string_view phrase, std::span<const Constituent> parts) {
  const HeadRule& rule = rule_of(phrase);
  std::string_view categories = rule.categories;
  while (!categories.empty()) {
    const std::size_t end = std::min(categories.find(' '), categories.size());
    const std::string_view first = categories.substr(0, end);
    const std::size_t place = outermost(parts, rule.side, [&](const Constituent& part) {
      return lists(first, '|', part.category);
    });
    if (place < parts.size()) return place;
    categories.remove_prefix(std::min(end + 1, categories.size()));
  }
  const std::size_t place = outermost(parts, rule.side, [](const Constituent& part) {
    return !(part.is_word && is_punctuation_tag(part.category));
  });
  return place < parts.size() ? place : rule.side == kLeft ? 0 : parts.size() - 1;
}

std::string_view arc_label(std::string_view phrase, std::span<const Constituent> parts,
                           std::size_t head, std::size_t dependent) {
  const Constituent& part = parts[dependent];
  if (part.is_word && is_punctuation_tag(part.category)) return "P";
  if (has_function(part, "SBJ")) return "SUB";
  if (has_function(part, "PRD")) return "PRD";
  if (phrase == "VP") {
    const bool is_object = part.category == "NP" && dependent > head && !is_adverbial(part);
    if (is_object) return "OBJ";
    if (part.category == "VP" && parts[head].is_word && is_verb(parts[head].category)) return "VC";
  }
  if (phrase == "SBAR") return "SBAR";
  if (is_one_of(phrase, "PP WHPP")) return "PMOD";
  if (is_one_of(phrase, "NP NX NAC WHNP")) return "NMOD";
  if (is_one_of(phrase, "ADJP ADVP QP WHADJP WHADVP")) return "AMOD";
  if (is_one_of(phrase, "VP S SQ SINV SBARQ")) return "VMOD";
  return "DEP";
}

}  // namespace keel::models
