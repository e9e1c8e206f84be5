// Treebanks as text: every oddity, what is written back, and each way a row can be wrong.
#include "models/dependency_parser/conll.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using test::refuses;
using Heads = std::vector<std::int32_t>;
using Texts = std::vector<std::string_view>;

Treebank read_bank(const std::string& text, const ConllOptions& options = {}) {
  return read_conll(text, "bank", options);
}

std::string joined_blocks(const Treebank& treebank) {
  std::string text;
  for (const Sentence& sentence : treebank.sentences) text += sentence.block;
  return text;
}

// A text of ten columns without DEPS and without empty nodes.
std::string without_other_arcs(std::string text) {
  for (const char* arcs : {"3:aux", "5:x"}) {
    const std::size_t at = text.find(arcs);
    if (at != text.npos) text.replace(at, std::string_view(arcs).size(), "_");
  }
  const std::size_t node = text.find("3.1\t");
  if (node != text.npos) text.erase(node, text.find('\n', node) + 1 - node);
  return text;
}

// The text again, written with the arcs that were read.
std::string written_again(const Treebank& treebank) {
  std::string text;
  for (const Sentence& s : treebank.sentences) text += with_arcs(s, s.heads, s.labels) + "\n";
  return text;
}

const std::string kOdd =
    "# newdoc\n"
    "# text = Don't go .\n"
    "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tDo\tdo\tAUX\tVB\tMood=Imp\t3\taux\t3:aux\t_\n"
    "2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_\n"
    "3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No\n"
    "3.1\tgone\t_\t_\t_\t_\t_\t_\t5:x\t_\n"
    "# in between\n"
    "4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_\n"
    "\n"
    "\n"
    "# 1-2\n"
    "1\tNew York\t_\tPROPN\t_\t_\t0\troot\t_\t_\n"
    "\n"
    "# the end\n";

TEST_CASE("conll: comments, ranges, empty nodes, empty lines, forms with blanks, coarse tags") {
  const Treebank treebank = read_bank(kOdd, {.is_conllu = true});
  REQUIRE(treebank.sentences.size() == 2);
  const Sentence &one = treebank.sentences[0], &two = treebank.sentences[1];
  CHECK(one.forms == Texts{"Do", "n't", "go", "."});
  CHECK(one.tags == Texts{"VB", "RB", "VB", "."});
  CHECK(one.coarse_tags == Texts{"AUX", "PART", "VERB", "PUNCT"});
  CHECK(one.heads == Heads{3, 3, 0, 3});
  CHECK(one.labels == Texts{"aux", "advmod", "root", "punct"});
  CHECK(one.line == 4);
  CHECK(two.forms == Texts{"New York"});
  CHECK(two.tags == Texts{"PROPN"});
  CHECK(two.line == 13);
  CHECK(joined_blocks(treebank) == kOdd);
  CHECK(two.block.ends_with("# the end\n"));
}

TEST_CASE("conll: what is written differs in heads and labels, and has no other arcs") {
  const Treebank treebank = read_bank(kOdd);
  CHECK(written_again(treebank) == without_other_arcs(kOdd));
  const std::string changed =
      with_arcs(treebank.sentences[0], Heads{2, 0, 2, 1}, Texts{"a", "root", "b", "c"});
  CHECK(changed ==
        "# newdoc\n"
        "# text = Don't go .\n"
        "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "1\tDo\tdo\tAUX\tVB\tMood=Imp\t2\ta\t_\t_\n"
        "2\tn't\tnot\tPART\tRB\t_\t0\troot\t_\t_\n"
        "3\tgo\tgo\tVERB\tVB\t_\t2\tb\t_\tSpaceAfter=No\n"
        "# in between\n"
        "4\t.\t.\tPUNCT\t.\t_\t1\tc\t_\t_\n");
}

TEST_CASE("conll: of CoNLL-X what is written has no PHEAD and no PDEPREL of the treebank") {
  const Treebank treebank =
      read_bank("1\ta\t_\tN\tN\t_\t2\tdep\t2\tgold\n2\tb\t_\tN\tN\t_\t0\troot\t0\tROOT\n");
  CHECK(with_arcs(treebank.sentences[0], Heads{0, 1}, Texts{"root", "x"}) ==
        "1\ta\t_\tN\tN\t_\t0\troot\t_\t_\n2\tb\t_\tN\tN\t_\t1\tx\t_\t_");
}

TEST_CASE("conll: ends of lines, and an end without any") {
  std::string windows;
  for (const char c : kOdd) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const Treebank treebank = read_bank(windows);
  REQUIRE(treebank.sentences.size() == 2);
  CHECK(treebank.sentences[0].labels.back() == "punct");
  CHECK(treebank.sentences[0].forms == read_bank(kOdd).sentences[0].forms);
  std::string expected;
  for (const char c : without_other_arcs(kOdd)) {
    expected += c == '\n' ? std::string("\r\n") : std::string(1, c);
  }
  CHECK(written_again(treebank) == expected);
  const std::string row = "1\ta\t_\tX\tX\t_\t0\troot\t_\t_";
  for (const char* end : {"", "\n", "\n\n", "\n  \n", "\r\n\r\n", "\n\n\n"}) {
    CAPTURE(std::string(end));
    const Treebank one = read_bank(row + end);
    REQUIRE(one.sentences.size() == 1);
    CHECK(one.sentences[0].block == row + end);
    // An end of line is added where the last line has none.
    CHECK(written_again(one) == row + (*end == '\0' ? "\n" : end));
    CHECK(read_bank("\n# first\n\n" + row + end).sentences[0].line == 4);
  }
}

TEST_CASE("conll: blanks and tabs alone on a line end a sentence") {
  const std::string ten = "1\ta\t_\tX\tX\t_\t0\troot\t_\t_\n", three = "a\tX\t0\n";
  for (const std::string& row : {ten, three}) {
    for (const char* between : {"\n", " \n", "\t\n", " \t \t\n", "\t\t\n", "\t\r\n", "\n\t\n"}) {
      CAPTURE(std::string(between));
      const Treebank treebank = read_bank(row + between + row + "\t");
      REQUIRE(treebank.sentences.size() == 2);
      CHECK(treebank.sentences[1].size() == 1);
      CHECK(written_again(treebank) == row + between + row + "\t\n");
    }
  }
}

TEST_CASE("conll: rows of form, tag and head, in which # and 3-4 are forms like others") {
  const std::string text = "#\t#\t2\n3-4\tCD\t0\n1.5\tCD\t2\n\n#\t#\t0\n";
  const Treebank treebank = read_bank(text);
  REQUIRE(treebank.sentences.size() == 2);
  CHECK(treebank.sentences[0].forms == Texts{"#", "3-4", "1.5"});
  CHECK(treebank.sentences[0].tags == Texts{"#", "CD", "CD"});
  CHECK(treebank.sentences[0].heads == Heads{2, 0, 2});
  CHECK(treebank.sentences[0].labels == Texts{"dep", "root", "dep"});
  CHECK(treebank.sentences[1].forms == Texts{"#"});
  CHECK(written_again(treebank) == text);
  CHECK(with_arcs(treebank.sentences[0], Heads{0, 1, 1}, Texts{"x", "x", "x"}) ==
        "#\t#\t0\n3-4\tCD\t1\n1.5\tCD\t1\n");
}

TEST_CASE("conll: heads and labels may be anything where they are not asked for") {
  const Treebank treebank = read_bank(
      "1\ta\t_\tX\tX\t_\t_\t_\t_\t_\n2\tb\t_\tX\tX\t_\t99\t\t_\t_\n", {.has_heads = false});
  CHECK(treebank.sentences[0].size() == 2);
  CHECK(treebank.sentences[0].heads.empty());
  CHECK(with_arcs(treebank.sentences[0], Heads{0, 1}, Texts{"root", "dep"}) ==
        "1\ta\t_\tX\tX\t_\t0\troot\t_\t_\n2\tb\t_\tX\tX\t_\t1\tdep\t_\t_");
}

// A row of ten columns.
std::string headed_row(std::string_view id, std::string_view head, std::string_view label = "dep",
                       std::string_view tag = "X") {
  return fmt::format("{}\tword\t_\t{}\t{}\t_\t{}\t{}\t_\t_\n", id, tag, tag, head, label);
}

TEST_CASE("conll: broken rows are refused with file, line and what was expected") {
  const auto refused = [](const std::string& text, std::string_view expected) {
    return refuses(ErrorKind::kBadInput, expected, [&] { read_bank(text, {.is_conllu = true}); });
  };
  const std::string root = headed_row("1", "0", "root");
  CHECK(refused(root + "2\tb\tX\n",
                "[conll] bank: line 2: expected 10 columns with tabs between "
                "them, got 3"));
  CHECK(refused(root + "2 b b X X _ 1 dep _ _\n", "line 2: expected 10 columns"));
  CHECK(refused("a\tX\t0\nb\tX\n", "line 2: expected 3 columns with tabs between them, got 2"));
  CHECK(refused(root + headed_row("3", "1"), "line 2: expected the id 2, got '3'"));
  CHECK(refused(root + headed_row("1", "1"), "line 2: expected the id 2, got '1'"));
  CHECK(refused(headed_row("0", "0"), "line 1: expected the id 1, got '0'"));
  CHECK(refused(headed_row("1-", "0"), "line 1: expected the id 1, got '1-'"));
  CHECK(
      refused("# no\n" + root + headed_row("2", "3"), "line 3: expected a head of 0 to 2, got 3"));
  CHECK(refused(headed_row("1", "-1"), "line 1: expected a head of 0 or more, got '-1'"));
  CHECK(refused(headed_row("1", "_"), "line 1: expected a head of 0 or more, got '_'"));
  CHECK(refused(headed_row("1", "99999999999"), "line 1: expected a head of 0 or more"));
  CHECK(refused(headed_row("1", "0", ""), "line 1: expected a label without blanks, got ''"));
  CHECK(refused(headed_row("1", "0", "a b"), "line 1: expected a label without blanks, got 'a b'"));
  CHECK(refused(headed_row("1", "0", "root", ""), "line 1: expected a tag without blanks, got ''"));
  CHECK(refused("1\t\t_\tX\tX\t_\t0\troot\t_\t_\n", "line 1: expected a form"));
  CHECK(refused("# only\n\n# comments\n", "line 3: expected a sentence, got none"));
  CHECK(refused("", "expected a sentence, got none"));
}

TEST_CASE("conll: CoNLL-U has one tree with one root, other treebanks may have others") {
  const std::string roots = headed_row("1", "0", "root") + headed_row("2", "0", "root"),
                    cycle =
                        headed_row("1", "0", "root") + headed_row("2", "3") + headed_row("3", "2"),
                    itself = headed_row("1", "1");
  for (const std::string& text : {roots, cycle, itself})
    CHECK(read_bank(text).sentences.size() == 1);
  const auto refused = [](const std::string& text, std::string_view expected) {
    return refuses(ErrorKind::kBadInput, expected, [&] { read_bank(text, {.is_conllu = true}); });
  };
  CHECK(refused(roots, "bank: line 1: expected one root in the sentence, got 2"));
  CHECK(
      refused(headed_row("1", "0") + "\n" + cycle, "line 3: expected heads that lead to the root"));
  CHECK(refused(itself, "line 1: expected heads that lead to the root, got a cycle"));
}

TEST_CASE("conll: sentences of one token, of 500, and of more than there may be") {
  std::string text = headed_row("1", "0") + "\n";
  for (int i = 1; i <= 500; ++i) text += headed_row(fmt::format("{}", i), fmt::format("{}", i - 1));
  const Treebank treebank = read_bank(text, {.is_conllu = true});
  REQUIRE(treebank.sentences.size() == 2);
  CHECK(treebank.sentences[0].size() == 1);
  CHECK(treebank.sentences[1].size() == 500);
  CHECK(treebank.sentences[1].heads[499] == 499);
  std::string endless;
  for (int i = 0; i <= kMostTokens; ++i) endless += "a\tX\t0\n";
  CHECK(refuses(ErrorKind::kBadInput, "line 65001: expected at most 65000 tokens in a sentence",
                [&] { read_bank(endless); }));
}

}  // namespace
}  // namespace keel::models
