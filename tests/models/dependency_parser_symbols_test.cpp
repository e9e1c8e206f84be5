// Words, tags and labels: their rows in one table, and their texts.
#include "models/dependency_parser/symbols.h"
#include "tests/models/dependency_parser_rows.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using test::refuses;

Symbols symbols_of(const std::string& text, std::int64_t min_count) {
  return Symbols(read_conll(text, "training", {}), min_count);
}

TEST_CASE("symbols: rows of one table, words, tags, labels, each with those that are none") {
  const Symbols symbols = symbols_of(kTinyTreebank, 1);
  // <pad>, <unk>, "the" of count 2, "New_York", "barks", "dog", ROOT.
  CHECK(symbols.no_word() == 0);
  CHECK(symbols.word("the") == 2);
  CHECK(symbols.word("New York") == 3);
  CHECK(symbols.word("dog") == 5);
  CHECK(symbols.word("cat") == 1);
  CHECK(symbols.word("<pad>") == 1);
  CHECK(symbols.root_word() == 6);
  // 7 none, 8 unknown, 9 DT and 10 NN of count 2, 11 X, 12 ROOT.
  CHECK(symbols.no_tag() == 7);
  CHECK(symbols.tag("VB") == 8);
  CHECK(symbols.tag("DT") == 9);
  CHECK(symbols.tag("X") == 11);
  CHECK(symbols.root_tag() == 12);
  // 13 none, 14 det and 15 root of count 2, 16 nsubj.
  CHECK(symbols.first_label() == 13);
  CHECK(symbols.labels().number("det") == 1);
  CHECK(symbols.labels().number("root") == 2);
  CHECK(symbols.labels().number("nsubj") == 3);
  CHECK(symbols.labels().number("obj") == 0);
  CHECK(symbols.labels().name(3) == "nsubj");
  CHECK(symbols.rows() == 17);
  CHECK(symbols.classes().size() == 7);
  CHECK(symbols.labels().places().from_root == std::vector<bool>{false, true, false});
  CHECK(symbols.labels().places().between_tokens == std::vector<bool>{true, false, true});
  const Symbols cut = symbols_of(kTinyTreebank, 2);
  CHECK(cut.word("the") == 2);
  CHECK(cut.word("dog") == 1);
  CHECK(cut.tag("X") != cut.tag("VB"));  // tags are all kept
}

TEST_CASE("symbols: texts and back") {
  const Symbols symbols = symbols_of(kTinyTreebank, 1), again(symbols.texts());
  CHECK(again.texts() == symbols.texts());
  CHECK(again.rows() == symbols.rows());
  CHECK(again.labels().places().from_root == symbols.labels().places().from_root);
  CHECK(symbols.texts().at("labels") == "det 0 2\nroot 2 0\nnsubj 0 1\n");
  const auto refused = [&](const char* name, const char* text, std::string_view expected) {
    auto texts = symbols.texts();
    texts[name] = text;
    return refuses(ErrorKind::kBadInput, expected, [&] { const Symbols damaged(texts); });
  };
  CHECK(refused("labels", "det 0\n", "labels: line 1: expected a new label and two counts"));
  CHECK(refused("labels", "det 0 2\ndet 0 1\n", "line 2: expected a new label"));
  CHECK(refused("labels", "det 0 -2\n", "line 1: expected a new label"));
  CHECK(refused("labels", "", "expected labels, got none"));
  CHECK(refused("words", "the 2\n", "words: line 1: expected '<pad> 0'"));
  auto texts = symbols.texts();
  texts.erase("tags");
  CHECK(refuses(ErrorKind::kBadInput, "expected the tags of a parser, got none",
                [&] { const Symbols damaged(texts); }));
}

TEST_CASE("symbols: where training has no label for a place, all may stand there") {
  const Symbols symbols = symbols_of(conll_row(1, "a", "X", 0, "root"), 1);
  CHECK(symbols.labels().places().between_tokens == std::vector<bool>{true});
}

}  // namespace
}  // namespace keel::models
