// The files of the data sets of translation, and the preparation of their text.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/task/batch.h"
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
  // WMT's sets that may stand in for the files of valid and test; empty: none.
  std::array<std::string_view, 2> released;
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

// The files of a split, one for each side.
struct SplitNames {
  std::string source, target;
};

// The names of files that may hold a split, in the order in which they count: by the layout's
// pattern, then as WMT gives them out, newstest2013-src.en.sgm and newstest2013-ref.de.sgm, also in
// the folders dev and test-full of its archives. `tokenized` files have only the layout's names.
std::vector<SplitNames> split_names(const CorpusLayout& layout, task::Split split,
                                    const std::pair<CorpusSide, CorpusSide>& sides, bool tokenized);
// The files of the set that one of them is of, such as newstest2014-deen-ref.de.sgm or test.de.
// Throws Error{kIo} for a name of another form.
SplitNames names_around(const CorpusLayout& layout, const std::filesystem::path& file,
                        const std::pair<CorpusSide, CorpusSide>& sides, bool tokenized);
// Whether a file has WMT's tags.
bool is_sgm(const std::filesystem::path& file);

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
  // For raw text of WMT whose training text is tokens already: punctuation in one way, characters
  // that do not print as blanks, hyphens split, case kept.
  static Preparation of_wmt(std::string language);
  std::string operator()(std::string_view line) const;

 private:
  bool raw_, lower_case_, is_of_wmt_ = false;
  std::string language_;
  text::MosesTokenizer tokenize_;
};

}  // namespace keel::models
