// IWSLT14 German-English, prepared from the release's tagged files as in fairseq's script.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "frontend/text/clean.h"

namespace keel::text {

// Sentences of two languages; the i-th of one belongs to the i-th of the other.
struct SentencePairs {
  std::vector<std::string> source, target;
};

struct Iwslt14 {
  SentencePairs train, valid, test;
  CleanCounts cleaned;  // of train and valid together, before the split
};

// Reads files from the folder de-en of the release, for the languages `source` and `target` ("de",
// "en"), plain or packed:
//   train.tags.de-en.de                                         training, see tagged_text.h
//   IWSLT14.TED.{dev2010,tst2010,tst2011,tst2012}.de-en.de.xml  testing, in this order
//   IWSLT14.TEDX.dev2012.de-en.de.xml                           testing, second in order
// All are tokenized as in Moses. Training pairs that the defaults of CleanOptions judge unfit are
// removed, and all text becomes lower case. Every 23rd remaining pair is for validation. Throws
// Error{kIo}, which names it, for a file that does not exist, and Error{kBadInput} for sides with
// different numbers of lines, and for invalid content.
Iwslt14 prepare_iwslt14(const std::filesystem::path& folder, const std::string& source,
                        const std::string& target);

// Throws Error{kBadInput} that names both sides if their numbers of sentences differ.
void expect_pairs(const SentencePairs& pairs, const std::string& source, const std::string& target);

}  // namespace keel::text
