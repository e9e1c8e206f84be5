// Numbers of words: the order, unknown words, and files that hold a vocabulary.
#include "frontend/text/vocabulary.h"

#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

using test::refuses;
using test::TempDir;
using test::write_bytes;
using Words = std::vector<std::string>;

Words words_of(const Vocabulary& vocabulary) {
  Words words;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) words.push_back(vocabulary.word(id));
  return words;
}

TEST_CASE("vocabulary: by count, equal counts by bytes") {
  const Vocabulary vocabulary({{"b", 2}, {"a", 2}, {"the", 9}, {"\u00E9", 2}, {"Z", 2}, {"aa", 2}},
                              {});
  CHECK(words_of(vocabulary) == Words{"<pad>", "<unk>", "the", "Z", "a", "aa", "b", "\u00E9"});
  for (std::int32_t id = 2; id < vocabulary.size(); ++id) {
    CHECK(vocabulary.id(vocabulary.word(id)) == id);
  }
  CHECK(vocabulary.count(2) == 9);
  CHECK(vocabulary.count(0) == 0);
}

TEST_CASE("vocabulary: rare words are unknown, and counted as such") {
  const WordCounts counts = {{"once", 1}, {"also", 1}, {"twice", 2}, {"often", 5}};
  const Vocabulary all(counts, {}), some(counts, {.min_count = 2}), one(counts, {.max_words = 1});
  CHECK(all.size() == 6);
  CHECK(words_of(some) == Words{"<pad>", "<unk>", "often", "twice"});
  CHECK(some.id("once") == Vocabulary::kUnk);
  CHECK(some.id("never") == Vocabulary::kUnk);
  CHECK(some.count(Vocabulary::kUnk) == 2);
  CHECK(words_of(one) == Words{"<pad>", "<unk>", "often"});
  CHECK(one.count(Vocabulary::kUnk) == 4);
  CHECK(Vocabulary({}, {}).size() == 2);
}

TEST_CASE("vocabulary: text that spells the reserved words is unknown, never padding") {
  const Vocabulary vocabulary({{"<pad>", 7}, {"<unk>", 5}, {"a", 1}}, {});
  CHECK(words_of(vocabulary) == Words{"<pad>", "<unk>", "a"});
  CHECK(vocabulary.id("<pad>") == Vocabulary::kUnk);
  CHECK(vocabulary.id("<unk>") == Vocabulary::kUnk);
  CHECK(vocabulary.id("") == Vocabulary::kUnk);
  CHECK(vocabulary.count(Vocabulary::kUnk) == 12);
}

TEST_CASE("vocabulary: saved and loaded") {
  TempDir folder;
  const Vocabulary saved({{"the", 9}, {"2\u00A01/2", 3}, {"a", 3}, {"rare", 1}}, {.min_count = 2});
  saved.save(folder / "words");
  CHECK(test::read_bytes(folder / "words") == "<pad> 0\n<unk> 1\nthe 9\n2\u00A01/2 3\na 3\n");
  const Vocabulary loaded = Vocabulary::load(folder / "words");
  CHECK(words_of(loaded) == words_of(saved));
  CHECK(loaded.count(1) == 1);
  CHECK(loaded.id("a") == saved.id("a"));
  CHECK(loaded.checksum() == saved.checksum());
  CHECK(loaded.checksum() == test::fnv(test::read_bytes(folder / "words")));
  Vocabulary({}, {}).save(folder / "none");
  CHECK(Vocabulary::load(folder / "none").size() == 2);
}

TEST_CASE("vocabulary: the checksum notices a count, a word and an order") {
  const std::uint64_t checksum = Vocabulary({{"a", 2}, {"b", 2}}, {}).checksum();
  CHECK(Vocabulary({{"b", 2}, {"a", 2}}, {}).checksum() == checksum);
  CHECK(Vocabulary({{"a", 3}, {"b", 2}}, {}).checksum() != checksum);
  CHECK(Vocabulary({{"a", 2}, {"c", 2}}, {}).checksum() != checksum);
  CHECK(Vocabulary({{"a", 2}, {"b", 3}}, {}).checksum() != checksum);
}

TEST_CASE("vocabulary: files that are wrong") {
  TempDir folder;
  const std::string head = "<pad> 0\n<unk> 4\n";
  const auto refused = [&](std::string_view text, const std::string& content) {
    write_bytes(folder / "words", content);
    return refuses(ErrorKind::kBadInput, text, [&] { Vocabulary::load(folder / "words"); });
  };
  CHECK(refused("words: line 1: expected '<pad> 0', got 'the 9'", "the 9\n"));
  CHECK(refused("line 1: expected '<pad> 0', got '<pad> 1'", "<pad> 1\n<unk> 1\n"));
  CHECK(refused("line 2: expected '<unk>' and a count, got 'the 9'", "<pad> 0\nthe 9\n"));
  CHECK(refused("in the first two lines, got 1", "<pad> 0\n"));
  for (const char* line : {"", "the", " 9", "the ", "the 9 9", "the x", "the -1", "the  9",
                           "the 9999999999999999999", "a\tb 3"}) {
    CHECK(refused(fmt::format("line 3: expected a word and its count, got '{}'", line),
                  head + line + "\n"));
  }
  CHECK(refused("line 3: expected a count of 1 or more, got 'the 0'", head + "the 0\n"));
  CHECK(refused("line 4: expected a new word, got 'the 3'", head + "the 9\nthe 3\n"));
  CHECK(refused("line 3: expected a new word, got '<pad> 3'", head + "<pad> 3\n"));
  CHECK(refused("line 3: expected a new word, got '<unk> 3'", head + "<unk> 3\n"));
  CHECK(refused("line 4: expected words by falling counts", head + "a 3\nb 4\n"));
  CHECK(refused("line 4: expected words by falling counts", head + "b 3\na 3\n"));
  CHECK(refused("line 3: expected UTF-8, got ff at byte 2", head + "a\xFF 3\n"));
  CHECK(refused("expected content", ""));
}

TEST_CASE("vocabulary: refusals") {
  const auto refused = [](std::string_view text, const WordCounts& counts,
                          const VocabularyOptions& options) {
    return refuses(ErrorKind::kUsage, text, [&] { Vocabulary(counts, options); });
  };
  CHECK(refused("min_count: expected 1 or more, got 0", {}, {.min_count = 0}));
  CHECK(refused("max_words: expected 0 or more, got -1", {}, {.max_words = -1}));
  CHECK(refused("without blanks", {{"", 1}}, {}));
  CHECK(refused("without blanks", {{"a b", 1}}, {}));
  CHECK(refused("without blanks", {{"a\n", 1}}, {}));
  CHECK(refused("that occur, got \"a\" 0 times", {{"a", 0}}, {}));
  const Vocabulary vocabulary({{"a", 1}}, {});
  CHECK(refuses(ErrorKind::kUsage, "id: expected 0 to 2, got 3", [&] { vocabulary.word(3); }));
  CHECK(refuses(ErrorKind::kUsage, "id: expected 0 to 2, got -1", [&] { vocabulary.count(-1); }));
}

}  // namespace
}  // namespace keel::text
