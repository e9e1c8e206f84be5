// Bracketed trees: what is read, and every way a line can be wrong.
#include "frontend/text/tree.h"

#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

using test::refuses;
using Words = std::vector<std::string>;

LabelledSentence read(std::string_view line) { return read_tree(line, 5, "trees.txt: line 7"); }

bool refused(std::string_view text, std::string_view line) {
  return refuses(ErrorKind::kBadInput,
                 std::string("[tree] trees.txt: line 7: ") + std::string(text),
                 [&] { read(line); });
}

TEST_CASE("tree: the root's label and the leaves from left to right") {
  const LabelledSentence sentence = read("(3 (2 (2 The) (2 Rock)) (4 (3 is) (2 (1 not) (0 bad))))");
  CHECK(sentence.label == 3);
  CHECK(sentence.words == Words{"The", "Rock", "is", "not", "bad"});
  CHECK(read("(0 one)").words == Words{"one"});
  CHECK(read("(0 one)").label == 0);
  CHECK(read("(4 (2 a) (2 b) (2 c) (2 d))").words == Words{"a", "b", "c", "d"});
  CHECK(read("(1 (1 (1 deep)))").words == Words{"deep"});
}

TEST_CASE("tree: blanks between the parts") {
  const std::string line = "\t( 3 ( 2 a )(2\tb)(2 c ) )  ";
  CHECK(read(line).label == 3);
  CHECK(read(line).words == Words{"a", "b", "c"});
  CHECK(read("(3(2 a)(2 b))").words == Words{"a", "b"});
}

TEST_CASE("tree: brackets as words") {
  CHECK(read("(2 (2 -LRB-) (2 (2 a) (2 -RRB-)))").words == Words{"(", "a", ")"});
  CHECK(read("(2 (2 -lrb-) (2 -rrb-))").words == Words{"(", ")"});
  CHECK(read("(2 (2 -LRB-a) (2 -LRB))").words == Words{"-LRB-a", "-LRB"});
  CHECK(read("(2 (2 writer\\/director) (2 2\u00A01\\/2))").words ==
        Words{"writer\\/director", "2\u00A01\\/2"});
}

TEST_CASE("tree: brackets that do not fit") {
  CHECK(refused("expected '(' at byte 1, got the end", ""));
  CHECK(refused("expected '(' at byte 3, got the end", "  "));
  CHECK(refused("expected '(' at byte 1, got 'word'", "word"));
  CHECK(refused("expected '(' at byte 1, got ')'", ")"));
  CHECK(refused("expected 1 more ')' at byte 7, got the end", "(3 one"));
  CHECK(refused("expected 2 more ')' at byte 10, got the end", "(3 (2 one"));
  CHECK(refused("expected 1 more ')' at byte 11, got the end", "(3 (2 one)"));
  CHECK(refused("expected nothing after the tree at byte 8, got ')'", "(3 one))"));
}

TEST_CASE("tree: text after the tree") {
  CHECK(refused("expected nothing after the tree at byte 9, got 'more'", "(3 one) more"));
  CHECK(refused("expected nothing after the tree at byte 8, got '('", "(3 one)(2 two)"));
}

TEST_CASE("tree: labels") {
  CHECK(refused("expected a label of 0 to 4 at byte 2, got '('", "((2 a) (2 b))"));
  CHECK(refused("expected a label of 0 to 4 at byte 3, got ')'", "( )"));
  CHECK(refused("expected a label of 0 to 4 at byte 2, got the end", "("));
  CHECK(refused("expected a label of 0 to 4 at byte 2, got 'word'", "(word)"));
  for (const char* label : {"5", "-1", "2.0", "2x", "+2", "99999999999", "NaN"}) {
    CAPTURE(label);
    CHECK(refused(fmt::format("expected a label of 0 to 4 at byte 2, got '{}'", label),
                  fmt::format("({} word)", label)));
    // An inner node's label is checked although it is not used.
    CHECK(refused(fmt::format("expected a label of 0 to 4 at byte 5, got '{}'", label),
                  fmt::format("(2 ({} word))", label)));
  }
  CHECK_THROWS_AS(read_tree("(2 word)", 2, ""), Error);
  CHECK(read_tree("(1 word)", 2, "").label == 1);
}

TEST_CASE("tree: leaves") {
  CHECK(refused("expected a word or a tree after the label at byte 3, got ')'", "(2)"));
  CHECK(refused("expected a word or a tree after the label at byte 4, got ')'", "(2 )"));
  CHECK(refused("expected ')' after a word at byte 6, got 'b'", "(2 a b)"));
  CHECK(refused("expected ')' after a word at byte 6, got '('", "(2 a (2 b))"));
  CHECK(refused("expected '(' or ')' after a tree at byte 10, got 'b'", "(2 (2 a) b)"));
}

TEST_CASE("tree: depth is limited and reading does not recurse") {
  const auto nested = [](int depth) {
    std::string line;
    for (int i = 0; i < depth; ++i) line += "(2 ";
    return line + "word" + std::string(static_cast<std::size_t>(depth), ')');
  };
  CHECK(read(nested(kMaxTreeDepth)).words == Words{"word"});
  CHECK(refused("expected a tree of at most 1000 levels at byte 3001, got '('",
                nested(kMaxTreeDepth + 1)));
  CHECK(refused("expected a tree of at most 1000 levels at byte 3001, got '('", nested(1'000'000)));
}

TEST_CASE("tree: long foreign text is cut in messages, not within a character") {
  std::string word;
  for (int i = 0; i < 50; ++i) word += "\u20AC";
  CHECK(refused("expected a label of 0 to 4 at byte 2, got '" + word.substr(0, 39) + "'",
                "(" + word + ")"));
}

}  // namespace
}  // namespace keel::text
