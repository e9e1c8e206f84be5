// The real data sets of translation. Each file may be plain or packed as .gz or .xz.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "frontend/task/batch.h"
#include "models/translation/corpus.h"

namespace keel::models {

struct CorpusOptions {
  // One of corpus_names(), and source and target language: "de-en".
  std::string corpus = "multi30k", languages = "de-en";
  bool lower_case = true;                          // for sets that are not in lower case already
  bool tokenized = false;                          // for "files": their lines are finished tokens
  std::uint64_t seed = 0;                          // for the split of tatoeba
  std::optional<task::Split> only = std::nullopt;  // as task::DataRequest::only
};

// "files", "multi30k", "iwslt14", "iwslt15", "wmt", "tatoeba".
std::vector<std::string> corpus_names();

// The languages of a data set in the form of the option, such as "de-en". For "files" they are
// those of the folder's training files, if there are two.
std::string languages_in(const std::filesystem::path& folder, const std::string& corpus);

// Reads a data set from a folder, from the folder of its name in it, or from that in `translation`:
//   files     train, valid (else val, dev) and test of any two languages: train.fr, train.en
//             (in the folder itself);
//             raw text unless `tokenized`
//   multi30k  train, val, test_2016_flickr; .de and .en (folder multi30k); raw text
//   iwslt14   train (else train-sample), valid, test; .de and .en (iwslt14-de-en); prepared as
//             `keel text iwslt14` does. Or the release, whose training side is
//             train.tags.de-en.de (there, or in de-en) and which is then prepared in this way
//   iwslt15   train, tst2012, tst2013; .en and .vi (iwslt15-en-vi); tokenized, case kept
//   wmt       src-train.txt and targ-train.txt, -val, -test (wmt-sample-en-de); src is English;
//             tokenized, case kept
//   of files and wmt, valid and test may also be WMT's own newstest2013-src.en.sgm with
//             newstest2013-ref.de.sgm, and newstest2014 or newstest2014-deen, there or in the
//             folders dev and test-full of its archives. They are raw text; beside tokens of wmt
//             punctuation is written in one way and hyphens are split, as in the papers' programs
//   tatoeba   deu.txt, English, tab, German in a line (tatoeba-en-de); raw text. It has no split:
//             English sentences are shuffled with the seed, and all translations of one stay
//             together; 1 in 50 is for validation and 1 in 50 for testing
// Raw text is brought into NFC, tokenized as by Moses, escaped, and made lower case if asked for.
// If `only` asks for one split, its files are enough. A file in place of a folder is then a side of
// that split, such as test.de with test.en beside it, or all of tatoeba's form.
// Throws Error{kUsage} for a name or languages that the set does not have; Error{kIo} that says
// which file was looked for and where, also for the test set, though it is read only later; and
// Error{kBadInput} with file and line: sides of unequal length, bytes that are not UTF-8, a line
// without a tab.
ParallelCorpus read_corpus(const std::filesystem::path& folder, const CorpusOptions& options);

}  // namespace keel::models
