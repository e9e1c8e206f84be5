// The numbers of symbols as fairseq gives them, and files that hold them.
#include "frontend/text/dictionary.h"

#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

using test::refuses;
using Ids = std::vector<std::int32_t>;

TEST_CASE("dictionary: four specials, then by count, equal counts by bytes, then fillers") {
  const Dictionary dictionary({{"b", 2}, {"the", 9}, {"a", 2}, {"\u00E9", 2}, {"Z", 2}}, {});
  CHECK(dictionary.size() == 16);
  CHECK(dictionary.text() ==
        "the 9\nZ 2\na 2\nb 2\n\u00E9 2\nmadeupword0000 0\nmadeupword0001 0\nmadeupword0002 0\n"
        "madeupword0003 0\nmadeupword0004 0\nmadeupword0005 0\nmadeupword0006 0\n");
  CHECK(dictionary.id("the") == 4);
  CHECK(dictionary.first_filler() == 9);
  CHECK(dictionary.symbol(2) == "</s>");
  CHECK(dictionary.count(4) == 9);
  CHECK(Dictionary({{"a", 1}}, {.multiple = 1}).size() == 5);
  CHECK(Dictionary({{"a", 1}}, {.multiple = 5}).first_filler() == 5);
}

TEST_CASE("dictionary: limits, and texts that spell the specials") {
  const WordCounts counts = {{"<pad>", 9}, {"</s>", 9}, {"a", 3}, {"b", 2}, {"c", 1}};
  CHECK(Dictionary(counts, {.min_count = 2, .multiple = 1}).text() == "a 3\nb 2\n");
  CHECK(Dictionary(counts, {.max_symbols = 1, .multiple = 1}).text() == "a 3\n");
  CHECK(Dictionary(counts, {.max_symbols = 9, .multiple = 1}).text() == "a 3\nb 2\nc 1\n");
  // None of the four takes the place of a symbol, however often a text spells it.
  const WordCounts spelled = {{"<s>", 9}, {"<pad>", 8}, {"</s>", 7}, {"<unk>", 6},
                              {"<x>", 5}, {"a", 4},     {"b", 3}};
  for (std::int64_t most = 1; most <= 3; ++most) {
    const Dictionary cut(spelled, {.max_symbols = most, .multiple = 1});
    CHECK(cut.size() == Dictionary::kSpecials + most);
    CHECK(cut.symbol(std::int32_t(cut.size() - 1)) == std::vector{"<x>", "a", "b"}[most - 1]);
    CHECK(cut.first_filler() == cut.size());
    CHECK(Dictionary(spelled, {.max_symbols = most}).size() == 8);
    CHECK(Dictionary(spelled, {.max_symbols = most}).first_filler() == cut.size());
  }
  const Dictionary dictionary(counts, {});
  for (const char* name : {"<s>", "<pad>", "</s>", "<unk>", "never", ""}) {
    CHECK(dictionary.id(name) == Dictionary::kUnk);
  }
}

TEST_CASE("dictionary: lines as numbers, and back") {
  const Dictionary dictionary({{"a", 3}, {"b", 2}}, {});
  CHECK(dictionary.encode("a  b x <pad>") == Ids{4, 5, 3, 3, 2});
  CHECK(dictionary.encode("") == Ids{2});
  CHECK(dictionary.decode(Ids{2}) == "");
  CHECK(dictionary.decode(Ids{0, 4, 1, 3, 5, 6, 2, 4}) == "a <unk> b");
}

TEST_CASE("dictionary: saved and loaded") {
  test::TempDir folder;
  const Dictionary saved({{"b", 2}, {"2\u00A01/2", 9}}, {});
  saved.save(folder / "dict.txt");
  const Dictionary loaded = Dictionary::load(folder / "dict.txt");
  CHECK(loaded.text() == saved.text());
  CHECK(loaded.checksum() == saved.checksum());
  CHECK(loaded.checksum() != Dictionary({{"b", 3}, {"2\u00A01/2", 9}}, {}).checksum());
  CHECK(loaded.first_filler() == saved.first_filler());
  // Other tools' files need not be in order.
  CHECK(Dictionary::parse("a 1\r\nb 5\n", "dict").id("b") == 5);
  // A word of a text that looks like a filler occurs in it.
  CHECK(Dictionary::parse("madeupword0000 3\nmadeupword0001 0\n", "dict").first_filler() == 5);
}

TEST_CASE("dictionary: files that are wrong") {
  const auto refused = [](const std::string& expected, const std::string& line) {
    return refuses(ErrorKind::kBadInput,
                   fmt::format("dict: line 2: expected {}, got '{}'", expected, line),
                   [&] { Dictionary::parse("x 3\n" + line + "\n", "dict"); });
  };
  for (const char* line : {"", "a", " 3"}) CHECK(refused("a symbol, a space and its count", line));
  for (const char* line : {"a ", "a x", "a -1", "a 1.5", "a 99999999999999999999"}) {
    CHECK(refused("a count of 0 or more after the symbol", line));
  }
  for (const char* line : {"a b 3", " a 3"}) CHECK(refused("a symbol without blanks", line));
  CHECK(refused("a new symbol", "x 1"));
  for (const char* line : {"<s> 1", "<pad> 1", "</s> 1", "<unk> 1"}) {
    CHECK(refused("a new symbol", line));
  }
}

TEST_CASE("dictionary: refusals") {
  const auto refused = [](std::string_view text, const WordCounts& counts,
                          const DictionaryOptions& options) {
    return refuses(ErrorKind::kUsage, text, [&] { Dictionary(counts, options); });
  };
  CHECK(refused("min_count: expected 1 or more, got 0", {}, {.min_count = 0}));
  CHECK(refused("max_symbols: expected 0 or more, got -1", {}, {.max_symbols = -1}));
  CHECK(refused("multiple: expected 1 to 4096, got 0", {}, {.multiple = 0}));
  CHECK(refused("without blanks that occur", {{"a b", 1}}, {}));
  CHECK(refused("without blanks that occur", {{" a", 1}}, {}));
  CHECK(refused("without blanks that occur", {{"a", 0}}, {}));
  const Dictionary dictionary({{"a", 1}}, {});
  for (const std::int32_t id : {-1, 8}) {
    CHECK(refuses(ErrorKind::kUsage, fmt::format("id: expected 0 to 7, got {}", id),
                  [&] { dictionary.symbol(id); }));
  }
}

}  // namespace
}  // namespace keel::text
