// WMT's own files of validation and test sets, beside text and beside tokens.
#include <filesystem>

#include "models/translation/files.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using test::refuses;
using test::TempDir;
using Strings = std::vector<std::string>;

// A folder with the three splits of a set of two files each.
void write_sides(const TempDir& folder, const Strings& names, const std::string& first,
                 const std::string& second) {
  for (const std::string& name : names) {
    test::write_bytes(folder / fmt::format(fmt::runtime(name), first), "Eins, zwei. Mr. X\nGut!\n");
    test::write_bytes(folder / fmt::format(fmt::runtime(name), second), "It's it.\nTwo\n");
  }
}

// A set of WMT's SGM with these sentences, as <seg> lines.
std::string sgm_of(const Strings& sentences) {
  std::string text = "<srcset setid=\"x\">\n<DOC>\n";
  for (const std::string& sentence : sentences) text += "<seg id=1>" + sentence + "</seg>\n";
  return text + "</DOC>\n</srcset>\n";
}

TEST_CASE("translation files: WMT's own sets for validation and testing, as they come") {
  const TempDir folder;
  std::filesystem::create_directories(folder / "dev");
  std::filesystem::create_directories(folder / "test-full");
  const std::filesystem::path dev = folder / "dev", test = folder / "test-full";
  for (const std::string side : {"src.en", "ref.de"}) {
    test::write_bytes(dev / ("newstest2013-" + side + ".sgm"),
                      sgm_of({"Well-known \u201CA &amp; B\u201D,", side}));
    test::write_bytes(test / ("newstest2014-deen-" + side + ".sgm.gz"),
                      test::gzip(sgm_of({"Second " + side, "x", "y"})));
  }
  write_sides(folder, {"{}-train.txt"}, "src", "targ");
  const ParallelCorpus wmt = read_corpus(folder.path(), {.corpus = "wmt", .languages = "en-de"});
  CHECK(wmt.train.source[0] == "Eins, zwei. Mr. X");
  // As the commands of docs/tasks/translation.md prepare the training text.
  CHECK(wmt.valid.source == Strings{"Well @-@ known &quot; A &amp; B , &quot;", "src.en"});
  CHECK(wmt.test().target == Strings{"Second ref.de", "x", "y"});
  write_sides(folder, {"train.{}"}, "en", "de");
  const CorpusOptions raw{.corpus = "files", .languages = "en-de"};
  const ParallelCorpus own = read_corpus(folder.path(), raw);
  CHECK(own.valid.source == Strings{"well-known \u201c a &amp; b \u201d ,", "src.en"});
  CHECK(own.raw_targets(task::Split::kTest) == Strings{"Second ref.de", "x", "y"});
  // One side is enough to name the set; files of the corpus's own names come first.
  const ParallelCorpus one =
      read_corpus(test / "newstest2014-deen-ref.de.sgm.gz",
                  {.corpus = "files", .languages = "en-de", .only = task::Split::kTest});
  CHECK(one.test().source == Strings{"second src.en", "x", "y"});
  CHECK(read_corpus(folder.path(),
                    {.corpus = "files", .languages = "en-de", .only = task::Split::kValid})
            .valid.target[1] == "ref.de");
  write_sides(folder, {"valid.{}", "test.{}"}, "en", "de");
  CHECK(read_corpus(folder.path(), raw).valid.target[1] == "two");
}

TEST_CASE(
    "translation files: SGM is refused where it is wrong, unequal, or beside finished tokens") {
  const TempDir folder;
  write_sides(folder, {"train.{}", "test.{}"}, "en", "de");
  const CorpusOptions options{.corpus = "files", .languages = "en-de"};
  test::write_bytes(folder / "newstest2013-src.en.sgm", sgm_of({"a", "b"}));
  CHECK(refuses(ErrorKind::kIo, "expected newstest2013-ref.de.sgm, newstest2013-ref.de.sgm.gz or",
                [&] { read_corpus(folder.path(), options); }));
  test::write_bytes(folder / "newstest2013-ref.de.sgm", sgm_of({"a"}));
  CHECK(refuses(ErrorKind::kBadInput, "newstest2013-src.en.sgm: expected 1 lines, as ",
                [&] { read_corpus(folder.path(), options); }));
  test::write_bytes(folder / "newstest2013-ref.de.sgm", "<seg>a</seg>\n<seg>b\n");
  CHECK(refuses(ErrorKind::kBadInput, "newstest2013-ref.de.sgm: line 2: expected <seg ...>text",
                [&] { read_corpus(folder.path(), options); }));
  CHECK(refuses(ErrorKind::kIo, "expected valid.en, valid.en.gz or", [&] {
    read_corpus(folder.path(), {.corpus = "files", .languages = "en-de", .tokenized = true});
  }));
}

}  // namespace
}  // namespace keel::models
