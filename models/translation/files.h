// The real data sets of translation. Each file may be plain or packed as .gz or .xz.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/translation/corpus.h"

namespace keel::models {

struct CorpusOptions {
  // Which of corpus_names(), and from which language into which: "de-en".
  std::string corpus = "multi30k", languages = "de-en";
  bool lower_case = true;  // of sets that are not in lower case already
  std::uint64_t seed = 0;  // of the split of tatoeba
};

// "multi30k", "iwslt14", "iwslt15", "wmt", "tatoeba".
std::vector<std::string> corpus_names();

// Reads a data set from a folder, from the folder of its name in it, or from that in `translation`:
//   multi30k  train, val, test_2016_flickr; .de and .en (folder multi30k); raw text
//   iwslt14   train (else train-sample), valid, test; .de and .en (iwslt14-de-en); prepared as
//             `keel text iwslt14` does
//   iwslt15   train, tst2012, tst2013; .en and .vi (iwslt15-en-vi); tokenized, case kept
//   wmt       src-train.txt and targ-train.txt, -val, -test (wmt-sample-en-de), English being src;
//             tokenized, case kept
//   tatoeba   deu.txt, English, tab, German in a line (tatoeba-en-de); raw text. It has no split:
//             English sentences are shuffled with the seed, and all translations of one stay
//             together; 1 in 50 is for validation and 1 in 50 for testing
// Raw text is brought into NFC, tokenized as Moses does, escaped, and made lower case if asked for.
// Throws Error{kUsage} for a name or languages that the set has not, Error{kIo} that says which
// file was looked for and where, and Error{kBadInput} with file and line: sides of unequal length,
// bytes that are not UTF-8, a line without a tab.
ParallelCorpus read_corpus(const std::filesystem::path& folder, const CorpusOptions& options);

}  // namespace keel::models
