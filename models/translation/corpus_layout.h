// The files of the data sets of translation, and the preparation of their text.
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

// The names of the files of a data set, and their place.
struct CorpusLayout {
  std::string_view corpus;
  std::string_view folder;  // of its own; empty: none
  // The pattern of a file's name; {0} stands for the split, {1} for the language.
  std::string_view pattern;
  // Names of train, valid and test. '|' separates names; the first file that exists counts.
  std::array<std::string_view, 3> splits;
  std::array<std::string_view, 2> languages;  // of the data set; empty: any two
  std::array<std::string_view, 2> names;      // the languages in the names of its files
  bool raw;                                   // whether text is as people write it, and not tokens
};

// Throws Error{kUsage} for an unknown name.
const CorpusLayout& layout_of(const std::string& corpus);

// A side of a corpus: its language, and the name of that language in its files.
struct CorpusSide {
  std::string language, name;
};

// Source and target of "de-en". Throws Error{kUsage} for languages that the corpus lacks.
std::pair<CorpusSide, CorpusSide> sides_of(const CorpusLayout& layout, std::string_view languages);

std::string file_name(const CorpusLayout& layout, std::string_view split, std::string_view name);

// The first of the possible folders of the corpus that holds one of the files. Throws Error{kIo}
// that names all of these folders.
std::filesystem::path find_folder(const std::filesystem::path& folder, const CorpusLayout& layout,
                                  const std::vector<std::string>& files);
// A file of that folder, plain or packed. Throws Error{kIo}.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& name);

// The preparation of a line for the network: raw text is brought into NFC, tokenized as by Moses,
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
