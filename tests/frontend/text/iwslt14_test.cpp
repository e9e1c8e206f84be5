// IWSLT14 from tagged files: what is kept of them, how pairs are parted, and what is refused.
#include "frontend/text/iwslt14.h"

#include "frontend/text/lines.h"
#include "frontend/text/tagged_text.h"
#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

using test::refuses;
using Sentences = std::vector<std::string>;

TEST_CASE("tagged text: lines for training") {
  CHECK(lines_of_tags("<url>http://x</url>\n<keywords>a, b</keywords>\n<talkid>1</talkid>\n"
                      "<title>A: The talk</title>\n<description>It is.</description>\n"
                      " One line. \n\nlast") ==
        Sentences{"A: The talk", "It is.", "One line.", "", "last"});
}

TEST_CASE("tagged text: sentences of XML") {
  CHECK(sentences_of_xml("<?xml?>\n<doc>\n<seg id=\"1\"> It\u2019s one. </seg>\n"
                         "<seg id=\"2\">two</seg>\n</doc>\n",
                         "x.xml") == Sentences{"It's one.", "two"});
  CHECK(refuses(ErrorKind::kBadInput, "x.xml: line 2: expected <seg ...>text</seg>, got '<seg id",
                [] { sentences_of_xml("a\n<seg id=\"1\"> one\n", "x.xml"); }));
  CHECK(refuses(ErrorKind::kBadInput, "x.xml: expected lines with <seg>, got none",
                [] { sentences_of_xml("a\n", "x.xml"); }));
}

TEST_CASE("tagged text: sentences of SGM as WMT gives it out") {
  CHECK(sentences_of_sgm("<refset setid=\"a\" srclang=any>\n<DOC docid='x>y'>\n<hl>\n"
                         "<seg id=\"1\"> It\u2019s one. </seg>\r\n</hl>\n<p>\n"
                         "<SEG id=2>two\r\n  lines\n\n</SEG >\n"
                         "<seg id='3' x=\"a>b\">a</seg><Seg>b < c</seg>\n"
                         "<!-- <seg id=\"9\">no</seg> --><seg id=\"4\"></seg>\n<segment>\n",
                         "x.sgm") == Sentences{"It\u2019s one.", "two lines", "a", "b < c", ""});
  CHECK(sentences_of_sgm("<seg>&lt;a&gt; &quot;b&quot; &apos;c&apos; AT&T &amp;lt; &eacute; &; "
                         "caf&#233; &#x20ac;&#X1F600;</seg>",
                         "x.sgm") ==
        Sentences{"<a> \"b\" 'c' AT&T &lt; &eacute; &; caf\u00e9 \u20ac\U0001F600"});
  // In IWSLT's own files characters stay as they are written.
  CHECK(sentences_of_xml("<seg id=1>a &amp; b</seg>", "x.xml") == Sentences{"a &amp; b"});
}

TEST_CASE("tagged text: SGM that is cut short or wrong is refused with file and line") {
  const auto refused = [](std::string_view content, std::string_view part) {
    CAPTURE(std::string(content));
    CHECK(refuses(ErrorKind::kBadInput, std::string(part),
                  [&] { sentences_of_sgm(content, "x.sgm"); }));
  };
  refused("<doc>\n\n<seg id=\"1\"> one\n<seg id=\"2\">two</seg>\n",
          "x.sgm: line 3: expected <seg ...>text</seg>, got '<seg id=\"1\"> one'");
  refused("<seg>a</seg>\n<seg>b</seg>\n<seg>c\n</doc>\n", "x.sgm: line 3: expected <seg ...>text");
  refused("<seg>a</seg>\n<seg id=\"2>b</seg>\n", "x.sgm: line 2: expected <seg ...>text</seg>");
  refused("<seg>a</seg>\n<seg id", "x.sgm: line 2: expected <seg ...>text</seg>, got '<seg id'");
  refused("<seg>a</seg", "x.sgm: line 1: expected <seg ...>text</seg>");
  refused("<segment>a</segment>", "x.sgm: expected lines with <seg>, got none");
  refused("", "x.sgm: expected lines with <seg>, got none");
  for (const char* number : {"0", "9", "55296", "1114112", "x", "", "12a", "99999999"}) {
    refused(fmt::format("<p>\n<seg>a &#{}; b</seg>", number),
            fmt::format("x.sgm: line 2: expected the number of a character, got '&#{};'", number));
  }
  refused("<seg>a\n" + std::string(kMaxLineBytes, '.') + "\n</seg>", "expected a line of at most");
}

// A release with `pairs` training pairs of three words, one of which is unlike in length.
void write_release(const test::TempDir& folder, int pairs) {
  for (const std::string language : {"de", "en"}) {
    std::string train = "<url>x</url>\n<title>One two three</title>\n";
    for (int i = 2; i <= pairs; ++i) {
      train += fmt::format("Zeile {}, x\n", i);
      if (i == 10) train += language == "de" ? "a b c d\n" : "a\n";
    }
    test::write_bytes(folder / ("train.tags.de-en." + language), train);
    for (const char* part :
         {"TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"}) {
      test::write_bytes(folder / fmt::format("IWSLT14.{}.de-en.{}.xml", part, language),
                        fmt::format("<seg id=\"1\"> Von {}. </seg>\n", part));
    }
  }
}

TEST_CASE("iwslt14: tokens, lower case, each 23rd pair for validation, five files for testing") {
  test::TempDir folder;
  write_release(folder, 47);
  const Iwslt14 data = prepare_iwslt14(folder.path(), "de", "en");
  CHECK(data.cleaned.pairs == 48);
  CHECK(data.cleaned.bad_ratio == 1);
  CHECK(data.train.source.size() == 45);
  CHECK(data.train.source[0] == "one two three");
  CHECK(data.valid.source == Sentences{"zeile 23 , x", "zeile 46 , x"});
  CHECK(data.valid.target == data.valid.source);
  CHECK(data.test.target == Sentences{"von ted.dev2010 .", "von tedx.dev2012 .",
                                      "von ted.tst2010 .", "von ted.tst2011 .",
                                      "von ted.tst2012 ."});
  const Iwslt14 back = prepare_iwslt14(folder.path(), "en", "de");
  CHECK(back.train.source == data.train.target);
}

TEST_CASE("iwslt14: what is not there, and sides of unequal length") {
  test::TempDir folder;
  write_release(folder, 5);
  std::filesystem::remove(folder / "IWSLT14.TED.tst2011.de-en.en.xml");
  CHECK(refuses(ErrorKind::kIo, "expected IWSLT14.TED.tst2011.de-en.en.xml, plain, .gz or .xz",
                [&] { prepare_iwslt14(folder.path(), "de", "en"); }));
  write_release(folder, 5);
  test::write_bytes(folder / "train.tags.de-en.en", "one\ntwo\n");
  CHECK(refuses(ErrorKind::kBadInput,
                "train.tags.de-en.de: expected 2 lines, as train.tags.de-en.en has, got 5",
                [&] { prepare_iwslt14(folder.path(), "de", "en"); }));
}

}  // namespace
}  // namespace keel::text
