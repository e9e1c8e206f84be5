// Lines that are as long as may be: the time and the memory that they take, and where that ends.
#include <functional>

#include "frontend/text/bleu.h"
#include "frontend/text/bpe.h"
#include "frontend/text/line_reader.h"
#include "frontend/text/moses_detokenizer.h"
#include "frontend/text/moses_tokenizer.h"
#include "frontend/text/punctuation.h"
#include "frontend/text/sentences.h"
#include "frontend/text/text_file.h"
#include "frontend/text/unicode.h"
#include "tests/support/cost.h"
#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

std::string repeated(std::string_view unit, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += unit;
  return text;
}

struct Filter {
  const char* name;
  std::function<void(const std::string&)> apply;
};

std::vector<Filter> filters() {
  const auto codes = BpeCodes::parse("#version: 0.2\na a\naa aa\n. .\n", "codes");
  return {
      {"tokenize", [](const auto& line) { MosesTokenizer({.aggressive_hyphens = true})(line); }},
      {"detokenize", [](const auto& line) { moses_detokenized(line); }},
      {"nfc", [](const auto& line) { normalized(line, Normalization::kNfc); }},
      {"nfkc", [](const auto& line) { normalized(line, Normalization::kNfkc); }},
      {"signs en", [](const auto& line) { normalized_punctuation(line, "en"); }},
      {"signs de", [](const auto& line) { normalized_punctuation(line, "de"); }},
      {"signs cs", [](const auto& line) { normalized_punctuation(line, "cs"); }},
      {"printable", [](const auto& line) { with_printable_characters(line); }},
      {"13a", [](const auto& line) { tokens_13a(line); }},
      {"compounds", [](const auto& line) { with_split_compounds(line); }},
      {"sentences", [](const auto& line) { sentences_of(line); }},
      {"bpe undo", [](const auto& line) { bpe_undone(line); }},
      {"bpe apply",
       [codes](const auto& line) {
         if (!line.starts_with("@@ ")) Bpe(codes).apply(line, "line");
       }},
      {"bleu", [](const auto& line) { BleuCounter().add(line, line); }}};
}

TEST_CASE("long lines: every filter takes a time in proportion to a line" *
          doctest::test_suite("slow")) {
  for (const Filter& filter : filters()) {
    for (const char* unit :
         {".",  ".\"",     ".\"<",         ". ",     "\"",     ",\"",       "a",   "a ",   "a-",
          "'",  "a'",      "``",           ",",      "&quot;", "<skipped>", "@@ ", "@-@ ", "( ",
          " )", "1\u00A0", "\u00A0\u00AB", "\u00E9", "e\u0301"}) {
      CAPTURE(std::string(filter.name));
      CAPTURE(std::string(unit));
      CHECK(test::grows_in_proportion(
          2048, [&](std::size_t times) { filter.apply(repeated(unit, times)); }));
    }
  }
}

// All marks of the second kind belong before all of the first.
TEST_CASE("long lines: marks are put into their order in a time in proportion to a line") {
  for (const Normalization form : {Normalization::kNfc, Normalization::kNfkc}) {
    CHECK(test::grows_in_proportion(2048, [&](std::size_t times) {
      normalized("a" + repeated("\u0301", times) + repeated("\u0323", times), form);
    }));
  }
  const std::string ordered = "\u1EA1" + repeated("\u0323", 2) + repeated("\u0301", 3);
  CHECK(normalized("a" + repeated("\u0301", 3) + repeated("\u0323", 3), Normalization::kNfc) ==
        ordered);
}

TEST_CASE("long lines: the longest is read, one byte more is refused with its place") {
  const test::TempDir folder;
  const std::string longest(kMaxLineBytes, 'x');
  test::write_bytes(folder / "longest", "a\n" + longest + "\nb\n");
  LineReader reader(folder / "longest");
  CHECK(reader.next()->text == "a");
  CHECK(reader.next()->text.size() == kMaxLineBytes);
  CHECK(reader.next()->text == "b");
  CHECK(read_text(folder / "longest", 1 << 26).size() == kMaxLineBytes + 5);
  test::write_bytes(folder / "longer", "a\n" + longest + "y\nb\n");
  const std::string_view part =
      "longer: line 2: expected a line of at most 16777216 bytes, got a longer one";
  CHECK(test::refuses(ErrorKind::kBadInput, part, [&] {
    LineReader again(folder / "longer");
    while (again.next()) {
    }
  }));
  CHECK(test::refuses(ErrorKind::kBadInput, part, [&] { read_text(folder / "longer", 1 << 26); }));
  CHECK(test::refuses(ErrorKind::kBadInput, part,
                      [&] { read_western_text(folder / "longer", 1 << 26); }));
}

#ifndef __SANITIZE_ADDRESS__

// A word of so many bytes, of which every one is a part that may be joined.
TEST_CASE("long lines: cutting a long word takes a small multiple of its memory" *
          doctest::test_suite("slow")) {
  constexpr std::int64_t kBytes = 1 << 22;
  Bpe bpe(BpeCodes::parse("#version: 0.2\na a\naa aa\n", "codes"));
  const std::string word(kBytes, 'a');
  bpe.apply("aaa", "line");
  const std::int64_t before = test::status_bytes("VmRSS");
  const std::int64_t growth = test::peak_growth([&] { bpe.apply(word, "line"); });
  malloc_trim(0);
  CAPTURE(growth);
  // A part of 16 bytes, a candidate of 16 in a vector that doubles, and what comes out.
  CHECK(growth < 48 * kBytes);
  CHECK(growth > kBytes);
  // The word is not kept, as short ones are.
  CHECK(test::status_bytes("VmRSS") - before < kBytes / 2);
}

#endif

}  // namespace
}  // namespace keel::text
