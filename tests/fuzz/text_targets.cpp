// Readers of text, of translation above all.
#include "frontend/text/bleu.h"
#include "frontend/text/bpe.h"
#include "frontend/text/bpe_codes.h"
#include "frontend/text/dictionary.h"
#include "frontend/text/line_reader.h"
#include "frontend/text/lines.h"
#include "frontend/text/moses_detokenizer.h"
#include "frontend/text/moses_tokenizer.h"
#include "frontend/text/nonbreaking_prefixes.h"
#include "frontend/text/punctuation.h"
#include "frontend/text/tagged_text.h"
#include "frontend/text/text_file.h"
#include "frontend/text/tree.h"
#include "frontend/text/utf8.h"
#include "frontend/text/vocabulary.h"
#include "tests/fuzz/target.h"

namespace keel::fuzz {
namespace {

void read_tree(std::string_view bytes) {
  const text::LabelledSentence sentence = text::read_tree(bytes, 5, "input");
  expect(!sentence.words.empty() && sentence.label >= 0 && sentence.label < 5, "a bad tree");
}

void read_western(std::string_view bytes) {
  const MemoryFile file(bytes);
  text::expect_text(text::read_western_text(file.path(), 1 << 20).utf8, "what was made of it");
}

void read_lines(std::string_view bytes) {
  const MemoryFile file(bytes);
  text::LineReader reader(file.path());
  while (const auto line = reader.next()) {
    for (const auto word : text::words_of(line->text)) expect(!word.empty(), "an empty word");
  }
}

void read_vocabulary(std::string_view bytes) {
  const auto vocabulary = text::Vocabulary::parse(bytes, "input");
  expect(text::Vocabulary::parse(vocabulary.text(), "again").checksum() == vocabulary.checksum(),
         "a vocabulary changes when it is written");
}

void read_dictionary(std::string_view bytes) {
  const auto dictionary = text::Dictionary::parse(bytes, "input");
  expect(text::Dictionary::parse(dictionary.text(), "again").checksum() == dictionary.checksum(),
         "a dictionary changes when it is written");
  dictionary.decode(dictionary.encode("a b c"));
}

// Merges, and after an empty line what they are applied to.
void read_bpe(std::string_view bytes) {
  const std::size_t end = std::min(bytes.find("\n\n"), bytes.size());
  const auto codes = text::BpeCodes::parse(bytes.substr(0, end), "input");
  expect(text::BpeCodes::parse(codes.text(), "again").merges == codes.merges,
         "merges change when they are written");
  const std::string line(bytes.substr(std::min(end + 2, bytes.size())));
  text::expect_text(line, "line");
  text::Bpe bpe(codes);
  text::bpe_undone(bpe.apply(line, "line"));
}

void read_prefixes(std::string_view bytes) {
  text::NonbreakingPrefixes::parse(bytes, "input").always("Mr");
}

// A line as Moses' tools take it, in three languages with rules of their own.
void read_moses(std::string_view bytes) {
  for (const char* language : {"en", "de", "fr"}) {
    text::MosesOptions options{.language = language};
    const std::string tokens = text::MosesTokenizer(options)(bytes);
    options.aggressive_hyphens = options.keep_last_period = true;
    text::MosesTokenizer{options}(bytes);
    text::moses_detokenized(tokens, {.language = language});
    text::expect_text(text::normalized_punctuation(bytes, language), "normalized");
  }
  text::with_printable_characters(bytes);
}

void read_tagged(std::string_view bytes) {
  text::expect_text(bytes, "input");
  text::lines_of_tags(bytes);
  const std::vector<std::string> sentences = text::sentences_of_xml(bytes, "input");
  expect(!sentences.empty(), "no sentence, and no error");
  const std::vector<std::string> decoded = text::sentences_of_sgm(bytes, "input");
  expect(decoded.size() == sentences.size(), "other sentences where characters are decoded");
  for (const std::string& sentence : decoded) {
    expect(sentence.find('\n') == sentence.npos, "a sentence of two lines");
    expect(!text::first_invalid_utf8(sentence), "a sentence that is no UTF-8");
  }
}

// A translation, and after the first end of line its reference.
void read_bleu(std::string_view bytes) {
  text::expect_text(bytes, "input");
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string_view reference = bytes.substr(std::min(end + 1, bytes.size()));
  for (const auto tokens :
       {text::BleuTokens::kNone, text::BleuTokens::kCompound, text::BleuTokens::k13a}) {
    text::BleuCounter counter({.tokens = tokens});
    counter.add(bytes.substr(0, end), reference);
    const double bleu = counter.score().bleu;
    expect(bleu >= 0 && bleu <= 100.0001, "a score that cannot be");
  }
}

}  // namespace

std::span<const Target> text_targets() {
  static constexpr Target kTargets[] = {
      {"tree", read_tree},         {"western", read_western},       {"lines", read_lines},
      {"bpe", read_bpe},           {"vocabulary", read_vocabulary}, {"dictionary", read_dictionary},
      {"prefixes", read_prefixes}, {"moses", read_moses},           {"tagged", read_tagged},
      {"bleu", read_bleu}};
  return kTargets;
}

}  // namespace keel::fuzz
