// keel text: filters line for line, files whole or not at all, and refusals that name file and
// line.
#include "tests/program/helpers.h"
#include "tests/support/input_checks.h"

namespace keel::cli {
namespace {

using test::TempDir;

// The program with standard input.
ProcessResult filter_text(std::vector<std::string> arguments, const std::string& input) {
  const TempDir folder;
  test::write_bytes(folder / "in", input);
  arguments.insert(arguments.begin(), "text");
  return run_keel(arguments, {.in = folder / "in"});
}

ProcessResult run_text(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "text");
  return run_keel(arguments);
}

TEST_CASE("text: help of every command, with its own example") {
  for (const std::string command :
       {"", "tokenize", "detokenize", "lower", "normalize", "clean", "iwslt14", "bpe", "bpe learn",
        "bpe apply", "bpe undo", "vocab", "bleu"}) {
    CAPTURE(command);
    std::vector<std::string> words{"text"};
    const std::size_t space = command.find(' ');
    if (!command.empty()) words.push_back(command.substr(0, space));
    if (space != std::string::npos) words.push_back(command.substr(space + 1));
    const std::string name = fmt::format("keel {}", fmt::join(words, " "));
    words.emplace_back("--help");
    const ProcessResult result = run_keel(words);
    CHECK(result.code == 0);
    const std::size_t examples = result.out.find("examples:\n");
    REQUIRE(examples != std::string::npos);
    CHECK(holds(result.out.substr(examples), name));
  }
}

TEST_CASE("text: filters") {
  CHECK(filter_text({"tokenize"}, "Don't.\n\nMr. X, ok?").out == "Don &apos;t .\n\nMr. X , ok ?\n");
  CHECK(filter_text({"tokenize", "--language", "de", "--no-escape", "--aggressive"},
                    "Geht's a-b?\r\n")
            .out == "Geht ' s a @-@ b ?\n");
  CHECK(filter_text({"tokenize", "--keep-last-period"}, "the U.S.\n").out == "the U.S.\n");
  CHECK(filter_text({"detokenize"}, "don &apos;t , a @-@ b !\n").out == "don't, a-b!\n");
  CHECK(filter_text({"detokenize", "--no-unescape"}, "a &amp; b\n").out == "a &amp; b\n");
  CHECK(filter_text({"lower"}, "TEN \u00C9\n").out == "ten \u00E9\n");
  CHECK(filter_text({"normalize"}, "e\u0301\uFB01\n").out == "\u00E9\uFB01\n");
  CHECK(filter_text({"normalize", "--form", "nfkc"}, "e\u0301\uFB01\n").out == "\u00E9fi\n");
  CHECK(filter_text({"normalize", "--punctuation", "de"}, "\u201EJa\u201C \u2013\u200B1\u00A05\n")
            .out == "\"Ja\" - 1,5\n");
  CHECK(filter_text({"bpe", "undo"}, "lo@@ w@@ er\n").out == "lower\n");
  CHECK(filter_text({"lower"}, "").out.empty());
}

TEST_CASE("text: a tag is not detokenized") {
  CHECK(filter_text({"detokenize"}, "<b> a , b </b>\n<> x , <b>\n<>,\n").out ==
        "<b> a , b </b>\n<> x , <b>\n<>,\n");
  CHECK(filter_text({"detokenize"}, "<b> a , b\n").out == "<b> a, b\n");
}

TEST_CASE("text: a language whose abbreviations keel has not is said") {
  test::TempDir folder;
  test::write_bytes(folder / "list", "p.ex\nM\n");
  for (const char* language : {"fr", "yue", "cs"}) {
    const ProcessResult result = filter_text({"tokenize", "--language", language}, "a\n");
    CHECK(holds(result.err, fmt::format("keel has no abbreviations of '{}'", language)));
    CHECK(holds(result.err, fmt::format("nonbreaking_prefix.{}", language)));
    CHECK(filter_text({"tokenize", "--language", language, "--prefixes", folder / "list"}, "a\n")
              .err.empty());
  }
  // Moses has no list for Turkish either.
  for (const char* language : {"en", "de", "tr"}) {
    CHECK(filter_text({"tokenize", "--language", language}, "a\n").err.empty());
  }
}

TEST_CASE("text: a language that is none") {
  for (const char* command : {"tokenize", "detokenize"}) {
    check_refusal(filter_text({command, "--language", "german"}, "a\n"), 2,
                  "--language: expected the code of a language (ISO 639-1), such as en, got "
                  "'german'");
  }
  check_refusal(filter_text({"tokenize", "--language", "xx"}, "a\n"), 2, "got 'xx'");
  check_refusal(filter_text({"normalize", "--punctuation", "ge"}, "a\n"), 2, "got 'ge'");
  check_refusal(filter_text({"normalize", "--punctuation", "a a"}, "a\n"), 2, "got 'a a'");
  for (const char* code : {"en", "cz", "vi", "zu", "aa", "tdt", "yue", "mni"}) {
    CHECK(filter_text({"tokenize", "--language", code}, "a\n").out == "a\n");
  }
}

TEST_CASE("text: as many lines out as in") {
  const std::string odd = "a\u2028b\n\u0085\nc\u00A0d\r\n\n\n e \nlast";
  const TempDir folder;
  test::write_bytes(folder / "codes", "#version: 0.2\na b\n");
  for (const std::vector<std::string>& filter :
       std::vector<std::vector<std::string>>{{"tokenize"},
                                             {"detokenize"},
                                             {"lower"},
                                             {"normalize"},
                                             {"bpe", "undo"},
                                             {"bpe", "apply", folder / "codes"}}) {
    CAPTURE(filter.front());
    const ProcessResult result = filter_text(filter, odd);
    CHECK(result.code == 0);
    CHECK(std::ranges::count(result.out, '\n') == 7);
  }
  std::string many;
  for (int i = 0; i < 50000; ++i) many += fmt::format("LINE {}\n", i);
  std::string lower = many;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  CHECK((filter_text({"lower"}, many).out == lower));
}

TEST_CASE("text: merges learned, applied and taken back; a dictionary") {
  const TempDir folder;
  const std::string text = "low low low lower lower\nslow\n";
  test::write_bytes(folder / "de", text);
  test::write_bytes(folder / "en.gz", test::gzip(text));
  const std::string codes = folder / "codes";
  const ProcessResult learned = run_text(
      {"bpe", "learn", folder / "de", folder / "en.gz", "--merges", "3", "--output", codes});
  CHECK(learned.code == 0);
  CHECK(learned.out.empty());
  CHECK(test::read_bytes(codes) == "#version: 0.2\nl o\nlo w</w>\nw e\n");
  CHECK(filter_text({"bpe", "learn", "--merges", "3"}, text + text).out == test::read_bytes(codes));
  const ProcessResult cut = filter_text({"bpe", "apply", codes}, text);
  CHECK(cut.out == "low low low lo@@ we@@ r lo@@ we@@ r\ns@@ low\n");
  CHECK(filter_text({"bpe", "undo"}, cut.out).out == text);
  CHECK(filter_text({"vocab", "--multiple", "1"}, cut.out).out ==
        "low 4\nlo@@ 2\nr 2\nwe@@ 2\ns@@ 1\n");
  CHECK(filter_text({"vocab", "--min-count", "3"}, cut.out).out ==
        "low 4\nmadeupword0000 0\nmadeupword0001 0\nmadeupword0002 0\n");
  CHECK(filter_text({"vocab", "--max-symbols", "1", "--multiple", "1"}, cut.out).out == "low 4\n");
}

TEST_CASE("text: pairs are cleaned together") {
  const TempDir folder;
  test::write_bytes(folder / "a", "one two\n\nx\na b c\nk l m n\n");
  test::write_bytes(folder / "b", "eins zwei\nleer\nx y z\na b\nk l m n o\n");
  const std::vector<std::string> files{folder / "a", folder / "b", folder / "A", folder / "B"};
  std::vector<std::string> clean{"clean", "--max", "4"};
  clean.insert(clean.end(), files.begin(), files.end());
  const ProcessResult result = run_text(clean);
  CHECK(result.code == 0);
  CHECK(result.err == "kept 2 of 5 pairs; 1 too short, 1 too long, 1 too unlike in length\n");
  CHECK(test::read_bytes(folder / "A") == "one two\na b c\n");
  CHECK(test::read_bytes(folder / "B") == "eins zwei\na b\n");
  test::write_bytes(folder / "b", "eins zwei\n");
  check_refusal(run_text(clean), 3,
                fmt::format("{}: line 2: expected a line beside that of {}, got the end", files[1],
                            files[0]));
  CHECK(test::read_bytes(folder / "A") == "one two\na b c\n");  // as it was
  check_refusal(run_text({"clean", files[1], files[0], files[2], files[3]}), 3, "line 2: expected");
  check_refusal(run_text({"clean", files[0], files[1], files[2], files[3], "--min", "0"}), 2,
                "min_tokens: expected 1 or more, got 0");
}

TEST_CASE("text: BLEU as text and as JSON") {
  const TempDir folder;
  test::write_bytes(folder / "said", "a b c d e\nx y .\n");
  test::write_bytes(folder / "right", "a b c d f\nx y .\n");
  const ProcessResult text = run_text({"bleu", folder / "said", folder / "right"});
  CHECK(text.out ==
        "BLEU = 72.31, 87.5/83.3/75.0/50.0 (BP=1.000, ratio=1.000, hyp_len=8, ref_len=8)\n"
        "nrefs:1|case:mixed|eff:no|tok:none|smooth:none\n");
  const Json json = json_of(run_text({"bleu", folder / "said", folder / "right", "--json"}));
  CHECK(json.at("matches") == Json{7, 5, 3, 1});
  CHECK(json.at("totals") == Json{8, 6, 4, 2});
  CHECK(json.at("reference_length") == 8);
  const ProcessResult cut =
      run_text({"bleu", folder / "said", folder / "right", "--tokenize", "13a", "--lowercase"});
  CHECK(holds(cut.out, "case:lc|eff:no|tok:13a|smooth:exp\n"));
  CHECK(cut.err.empty());
  test::write_bytes(folder / "cut", "a b .\nx y .\n");
  CHECK(holds(run_text({"bleu", folder / "cut", folder / "right", "--tokenize", "13a"}).err,
              "looks tokenized, and 13a is for text as people write it"));
  test::write_bytes(folder / "short", "a b c d e\n");
  check_refusal(run_text({"bleu", folder / "said", folder / "short"}), 3,
                "short: line 2: expected a line beside that of");
}

TEST_CASE("text: IWSLT14 from its release") {
  const TempDir folder;
  for (const std::string language : {"de", "en"}) {
    std::string train;
    for (int i = 0; i < 23; ++i) train += fmt::format("Line {}.\n", i);
    test::write_bytes(folder / ("train.tags.de-en." + language), train);
    for (const char* part :
         {"TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"}) {
      test::write_bytes(folder / fmt::format("IWSLT14.{}.de-en.{}.xml", part, language),
                        "<seg id=\"1\"> A. </seg>\n");
    }
  }
  const ProcessResult result = run_text({"iwslt14", folder.path(), folder / "out"});
  CHECK(result.err == "train 22, valid 1, test 5 pairs; 0 of 23 left out\n");
  CHECK(test::read_bytes(folder / "out" / "valid.de") == "line 22 .\n");
  CHECK(test::read_bytes(folder / "out" / "test.en") == "a .\na .\na .\na .\na .\n");
  check_refusal(run_text({"iwslt14", folder / "none", folder / "out"}), 4,
                "expected train.tags.de-en.de, plain, .gz or .xz");
}

TEST_CASE("text: what cannot be read is named by file and line") {
  const TempDir folder;
  const std::string codes = folder / "codes";
  test::write_bytes(codes, "#version: 0.2\na b\nabc\n");
  check_refusal(filter_text({"tokenize"}, "a\nb\xFF\n"), 3,
                "standard input: line 2: expected UTF-8, got ff at byte 2");
  check_refusal(filter_text({"bpe", "apply", codes}, "a\n"), 3,
                "codes: line 3: expected two symbols with a space between, got 'abc'");
  test::write_bytes(codes, "#version: 0.2\na b\n");
  check_refusal(filter_text({"bpe", "apply", codes}, "a\n\nb a@@\n"), 3,
                "standard input: line 3: expected words that do not end in @@, got 'a@@'");
  check_refusal(run_text({"bpe", "apply", folder / "none"}), 4, "none");
  check_refusal(run_text({"bpe", "learn", folder / "none"}), 4, "none");
  check_refusal(run_text({"bpe", "learn", codes, "--merges", "0"}), 2,
                "merges: expected 1 or more");
  check_refusal(run_text({"bpe", "learn", codes, "--output", folder / "no/where"}), 4, "where");
  const std::string longest(1 << 14, 'a');
  CHECK(filter_text({"bpe", "learn", "--merges", "2"}, "a\nb " + longest + "\n").code == 0);
  check_refusal(
      filter_text({"bpe", "learn"}, "a\nb " + longest + "a\n"), 3,
      "standard input: line 2: expected words of at most 16384 bytes to learn merges from, "
      "got one of 16385");
  CHECK(filter_text({"vocab"}, longest + "a\n").code == 0);
  check_refusal(run_text({"bleu", folder / "none", codes}), 4, "none");
  check_refusal(run_text({"bleu", codes, codes, "--tokenize", "14"}), 2, "--tokenize");
  test::write_bytes(folder / "prefixes", "a b c\n");
  check_refusal(run_text({"tokenize", "--prefixes", folder / "prefixes"}), 3,
                "prefixes: expected a word a line");
  check_refusal(run_text({"stem"}), 2);
  check_refusal(run_text({}), 2);
}

}  // namespace
}  // namespace keel::cli
