// The Penn Treebank's brackets as trees of words: heads, labels, sections, and what is refused.
#include <filesystem>

#include "frontend/text/tree.h"
#include "models/dependency_parser/data.h"
#include "models/dependency_parser/head_rules.h"
#include "models/dependency_parser/penn.h"
#include "tests/support/input_checks.h"
#include "tests/support/xz.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;
using task::Split;
using test::refuses;
using test::TempDir;
using test::write_bytes;

// The arcs of a text, "FORM>HEAD:LABEL" each, by the forms of the heads.
std::string arcs_of(const std::string& text) {
  const Treebank treebank = read_conll(rows_of_penn_trees(text, "x.mrg"), "rows", {});
  std::string arcs;
  for (const Sentence& sentence : treebank.sentences) {
    for (std::size_t i = 0; i < sentence.forms.size(); ++i) {
      const auto head = static_cast<std::size_t>(sentence.heads[i]);
      arcs += fmt::format("{}>{}:{} ", sentence.forms[i], head == 0 ? "" : sentence.forms[head - 1],
                          sentence.labels[i]);
    }
  }
  return arcs;
}

TEST_CASE("penn: heads and labels by the rules of Yamada and Matsumoto") {
  CHECK(arcs_of("( (S (NP-SBJ (NP (NNP Ada) (NNP Byron) ) (, ,)\n"
                "    (ADJP (NP (CD 30) (NNS years) ) (JJ old) ) (-LRB- -LRB-) )\r\n"
                "  (VP (MD will) (VP (VB meet) (NP (DT the) (NN board) )\n"
                "    (NP-TMP (NNP Monday) ) (PP (IN at) (NP (NN tea) )) ))\n\n(. .) ))\n") ==
        "Ada>Byron:NMOD Byron>will:SUB ,>Byron:P 30>years:NMOD years>old:AMOD old>Byron:NMOD "
        "-LRB->Byron:NMOD will>:ROOT meet>will:VC the>board:NMOD board>meet:OBJ Monday>meet:VMOD "
        "at>meet:VMOD tea>at:PMOD .>will:P ");
  // The word that begins an infinitive hangs from its verb, and a conjunction heads its clause.
  CHECK(arcs_of("((S(NP-SBJ-1(PRP They))(VP(VBD said)(SBAR(IN that)(S(NP-SBJ(-NONE- *-1))"
                "(VP(TO to)(VP(VB win)(ADJP-PRD (JJ good)))))))))") ==
        "They>said:SUB said>:ROOT that>said:VMOD to>win:VMOD win>that:SBAR good>win:PRD ");
  // Two nouns of one rank: the last one heads a noun phrase, the first one a verb phrase.
  CHECK(arcs_of("(NP (NP (NN tea)) (CC and) (NP (NNS cups) (NNP A) (JJ big)))") ==
        "tea>A:NMOD and>A:NMOD cups>A:NMOD A>:ROOT big>A:NMOD ");
  CHECK(arcs_of("(TOP (VP (VP (VBD ran)) (CC and) (VP (VBD sat))))") ==
        "ran>:ROOT and>ran:VMOD sat>ran:VMOD ");
  CHECK(arcs_of("(NP (NP (NNP Ann) (POS 's)) ($ $) (CD 5))") ==
        "Ann>'s:NMOD 's>5:NMOD $>5:NMOD 5>:ROOT ");
  CHECK(arcs_of("(QP (IN about) ($ $) (CD 5))") == "about>$:AMOD $>:ROOT 5>$:AMOD ");
  CHECK(arcs_of("(PRT|ADVP (RP up) (RB so))") == "up>:ROOT so>up:DEP ");
  CHECK(arcs_of("(FRAG (`` ``) (NN no) (, ,) (UH oh))") == "``>no:P no>:ROOT ,>no:P oh>no:DEP ");
  CHECK(arcs_of("(FRAG (: --) (. .))") == "-->:ROOT .>--:P ");
}

TEST_CASE("penn: labels of brackets") {
  CHECK(category_of("NP-SBJ-1") == "NP");
  CHECK(functions_of("NP-SBJ-1") == "-SBJ-1");
  CHECK(category_of("NP=2") == "NP");
  CHECK(category_of("-NONE-") == "-NONE-");
  CHECK(category_of("-LRB-") == "-LRB-");
  CHECK(category_of("PRP$") == "PRP$");
  CHECK(functions_of("S").empty());
}

TEST_CASE("penn: rows have words and tags as they are written, and traces are dropped") {
  CHECK(rows_of_penn_trees("( (S (NP-SBJ (-NONE- *)) (VP (VB Go) (PRT (-NONE- *T*-1)))) )\n"
                           "( (NP (CD 1\\/2) (-LRB- -LCB-)) )\n",
                           "x.mrg") ==
        "1\tGo\t_\tVB\tVB\t_\t0\tROOT\t_\t_\n\n"
        "1\t1\\/2\t_\tCD\tCD\t_\t0\tROOT\t_\t_\n2\t-LCB-\t_\t-LRB-\t-LRB-\t_\t1\tNMOD\t_\t_\n\n");
}

TEST_CASE("penn: what is wrong is refused with file and line") {
  const auto refused = [](const std::string& text, std::string_view part) {
    CAPTURE(text.substr(0, 100));
    CHECK(refuses(ErrorKind::kBadInput, std::string(part),
                  [&] { rows_of_penn_trees(text, "x.mrg"); }));
  };
  refused("", "[penn] x.mrg: expected a tree, got none");
  refused("( (S\n(NP )\n) )", "x.mrg: line 2: expected a word or a phrase before ')', got ')'");
  refused("()", "x.mrg: line 1: expected a word or a phrase before ')', got ')'");
  refused("( (S\n() ) )", "x.mrg: line 2: expected a label after '(', got ')'");
  refused("( ( (NN a)))", "x.mrg: line 1: expected a label after '('");
  refused("( (S\n\n(NN a)\n", "x.mrg: line 4: expected 2 more ')', got the end");
  refused("( (NN a))\n)", "x.mrg: line 2: expected '(', got ')'");
  refused("( (NN a))\nword", "x.mrg: line 2: expected '(', got 'word'");
  refused("( (NN a b))", "x.mrg: line 1: expected ')' after a word, got 'b'");
  refused("( (NN a (NN b)))", "x.mrg: line 1: expected ')' after a word, got '('");
  refused("( (NP (NN a) b))", "x.mrg: line 1: expected '(' or ')' after a phrase, got 'b'");
  refused("( a)", "x.mrg: line 1: expected '(' in a bracket without a label, got 'a'");
  refused("( (NN a))\n( (NP (-NONE- *)))\n", "x.mrg: line 2: expected a tree with a word");
  std::string deep;
  for (int i = 0; i <= text::kMaxTreeDepth; ++i) deep += "(S ";
  refused(deep, "x.mrg: line 1: expected a tree of at most 1000 levels");
  std::string wide = "(S";
  for (std::int64_t i = 0; i <= kMostTokens; ++i) wide += " (NN a)";
  refused(wide + ")", "x.mrg: line 1: expected a sentence of at most 65000 words");
}

std::string tree_of(const std::string& word) {
  return "( (S (NP-SBJ (NN " + word + ")) (VP (VBZ is))) )\n";
}

TEST_CASE("penn: sections 2 to 21 are for training, 22 for validation, 23 for testing") {
  const TempDir temp;
  const fs::path wsj = temp / "parsed/mrg/wsj";
  for (int section = 0; section <= 24; ++section) {
    const fs::path folder = wsj / fmt::format("{:02}", section);
    fs::create_directories(folder);
    write_bytes(folder / fmt::format("wsj_{:02}02.mrg", section),
                tree_of(fmt::format("second{}", section)));
    write_bytes(folder / fmt::format("WSJ_{:02}01.MRG", section),
                tree_of(fmt::format("first{}", section)));
    write_bytes(folder / "readme", "no tree");
  }
  const auto load = [&](Split split) { return load_treebank({.source = temp.path()}, split); };
  const Treebank train = load(Split::kTrain), valid = load(Split::kValid),
                 test = load(Split::kTest);
  REQUIRE(train.sentences.size() == 40);
  CHECK(train.sentences.front().forms[0] == "first2");
  CHECK(train.sentences[1].forms[0] == "second2");
  CHECK(train.sentences.back().forms[0] == "second21");
  REQUIRE(valid.sentences.size() == 2);
  CHECK(valid.sentences[0].forms[0] == "first22");
  REQUIRE(test.sentences.size() == 2);
  CHECK(test.sentences[1].forms[0] == "second23");
  CHECK(test.sentences[1].labels[0] == "SUB");
  CHECK(load_treebank({.source = wsj}, Split::kTest).sentences.size() == 2);
  write_bytes(wsj / "22/wsj_2203.mrg.xz", test::xz(tree_of("packed")));
  CHECK(load(Split::kValid).sentences[2].forms[0] == "packed");
  write_bytes(wsj / "05/wsj_0502.mrg", "( (S (NN a) )\n");
  CHECK(refuses(ErrorKind::kBadInput, "05/wsj_0502.mrg: line 2: expected 1 more ')', got the end",
                [&] { load(Split::kTrain); }));
  fs::remove_all(wsj / "05");
  CHECK(refuses(ErrorKind::kIo,
                "expected the sections 02 to 21 with files wsj_*.mrg, plain, .gz or "
                ".xz, got none of section 05",
                [&] { load(Split::kTrain); }));
}

TEST_CASE("penn: trees in one file, or in a file for each split") {
  const TempDir temp;
  std::string all;
  for (int i = 0; i < 20; ++i) all += tree_of(fmt::format("w{}", i));
  write_bytes(temp / "all.mrg", all);
  CHECK(load_treebank({.source = temp / "all.mrg"}, Split::kTest).sentences.size() == 2);
  write_bytes(temp / "wsj-dev.mrg.xz", test::xz(all));
  CHECK(load_treebank({.source = temp.path()}, Split::kValid).sentences.size() == 20);
}

}  // namespace
}  // namespace keel::models
