// Prose cut into sentences.
#include "frontend/text/sentences.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace keel::text {
namespace {

using Texts = std::vector<std::string>;

TEST_CASE("sentences: marks of an end, with what closes after them") {
  CHECK(sentences_of("One went. Two came! \"Did he?\" She nodded... 3 were left.") ==
        Texts{"One went.", "Two came!", "\"Did he?\"", "She nodded...", "3 were left."});
  CHECK(sentences_of("He asked \"why?\" and left. (It rained.) He came?! No") ==
        Texts{"He asked \"why?\" and left.", "(It rained.)", "He came?!", "No"});
}

TEST_CASE("sentences: full stops that belong to a word") {
  CHECK(sentences_of("Mr. Hill met J. Wood, M.A., at 3.30 p.m. yesterday. They spoke.") ==
        Texts{"Mr. Hill met J. Wood, M.A., at 3.30 p.m. yesterday.", "They spoke."});
  CHECK(sentences_of("It ended. and went on") == Texts{"It ended. and went on"});
  CHECK(sentences_of("Solve it for x. Then rest.") == Texts{"Solve it for x.", "Then rest."});
}

TEST_CASE("sentences: printed lines are joined, paragraphs end at empty and before indented ones") {
  CHECK(sentences_of(
            "THE TITLE\n\nIt was a\r\nlong way. He\nwent on\n  Then night came\n\tand it rained") ==
        Texts{"THE TITLE", "It was a long way.", "He went on", "Then night came", "and it rained"});
}

TEST_CASE("sentences: a long line says that every line is a paragraph") {
  const std::string longest(kLongestPrinted, 'x');
  CHECK(sentences_of("A title\nby somebody\n" + longest) ==
        Texts{"A title by somebody " + longest});
  CHECK(sentences_of("A title\nby somebody\n" + longest + "x") ==
        Texts{"A title", "by somebody", longest + "x"});
}

TEST_CASE("sentences: nothing, a byte-order mark, letters of any script") {
  CHECK(sentences_of("").empty());
  CHECK(sentences_of(" \n\n \n").empty());
  CHECK(sentences_of("\xEF\xBB\xBFOne. \xC3\x89t\xC3\xA9.") == Texts{"One.", "\xC3\x89t\xC3\xA9."});
}

}  // namespace
}  // namespace keel::text
