// IWSLT14 German-English, prepared from the tagged files of its release as fairseq's script does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "frontend/text/clean.h"

namespace keel::text {

// Sentences of two languages, the i-th of one belonging to the i-th of the other.
struct SentencePairs {
  std::vector<std::string> source, target;
};

struct Iwslt14 {
  SentencePairs train, valid, test;
  CleanCounts cleaned;  // of train and valid, before they were parted
};

// Reads from the folder de-en of the release, in `source` and `target` ("de", "en"), plain or
// packed:
//   train.tags.de-en.de                                         training, see tagged_text.h
//   IWSLT14.TED.{dev2010,tst2010,tst2011,tst2012}.de-en.de.xml  testing, in this order
//   IWSLT14.TEDX.dev2012.de-en.de.xml                           testing, second in order
// All are tokenized as Moses does, of training pairs those go that CleanOptions' own values judge
// unfit, and everything becomes lower case. Each 23rd pair that stays is for validation.
// Throws Error{kIo} that names the file that is not there, and Error{kBadInput} for sides that have
// not the same number of lines, and what cannot be in a file.
Iwslt14 prepare_iwslt14(const std::filesystem::path& folder, const std::string& source,
                        const std::string& target);

// Throws Error{kBadInput} that names both sides unless they have equally many sentences.
void expect_pairs(const SentencePairs& pairs, const std::string& source, const std::string& target);

}  // namespace keel::text
