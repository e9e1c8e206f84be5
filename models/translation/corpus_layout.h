// How the data sets of translation lie on the disk, and what is done to their text.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/text/moses_tokenizer.h"
#include "models/translation/files.h"

namespace keel::models {

// How the files of a data set are called, and where it lies.
struct CorpusLayout {
  std::string_view corpus;
  std::string_view folder;  // of its own; empty: none
  // Of a file's name; {0} stands for the split, {1} for the language.
  std::string_view pattern;
  // Names of train, valid and test, '|' between those of which the first that is there counts.
  std::array<std::string_view, 3> splits;
  std::array<std::string_view, 2> languages;  // that it has; empty: any two
  std::array<std::string_view, 2> names;      // by which its files call them
  bool raw;                                   // as people write it, or tokens already
};

// Throws Error{kUsage} for an unknown name.
const CorpusLayout& layout_of(const std::string& corpus);

// A side of a corpus: its language, and by which name its files call that.
struct CorpusSide {
  std::string language, name;
};

// Source and target of "de-en". Throws Error{kUsage} for languages that the corpus has not.
std::pair<CorpusSide, CorpusSide> sides_of(const CorpusLayout& layout, std::string_view languages);

std::string file_name(const CorpusLayout& layout, std::string_view split, std::string_view name);

// The first of the folders where the corpus may lie that holds one of the files. Throws Error{kIo}
// that names them all.
std::filesystem::path find_folder(const std::filesystem::path& folder, const CorpusLayout& layout,
                                  const std::vector<std::string>& files);
// A file of that folder, plain or packed. Throws Error{kIo}.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& name);

// A line as the network is to read it: raw text is brought into NFC, tokenized as Moses does,
// escaped, and made lower case if asked for.
class Preparation {
 public:
  Preparation(bool raw, bool lower_case, std::string language);
  std::string operator()(std::string_view line) const;

 private:
  bool raw_, lower_case_;
  text::MosesTokenizer tokenize_;
};

}  // namespace keel::models
