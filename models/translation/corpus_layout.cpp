#include "models/translation/corpus_layout.h"

#include <algorithm>

#include "frontend/io/near_miss.h"
#include "frontend/io/packed_file.h"
#include "frontend/text/unicode.h"
#include "src/core/error.h"
#include "src/core/nearest.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::array<CorpusLayout, 6> kCorpora = {
    {{"files", "", "{0}.{1}", {"train", "valid|val|dev", "test"}, {"", ""}, {"", ""}, true},
     {"multi30k",
      "multi30k",
      "{0}.{1}",
      {"train", "val", "test_2016_flickr"},
      {"de", "en"},
      {"de", "en"},
      true},
     {"iwslt14",
      "iwslt14-de-en",
      "{0}.{1}",
      {"train|train-sample", "valid", "test"},
      {"de", "en"},
      {"de", "en"},
      false},
     {"iwslt15",
      "iwslt15-en-vi",
      "{0}.{1}",
      {"train", "tst2012", "tst2013"},
      {"en", "vi"},
      {"en", "vi"},
      false},
     {"wmt",
      "wmt-sample-en-de",
      "{1}-{0}.txt",
      {"train", "val", "test"},
      {"en", "de"},
      {"src", "targ"},
      false},
     {"tatoeba", "tatoeba-en-de", "deu.txt", {"", "", ""}, {"en", "de"}, {"en", "de"}, true}}};

}  // namespace

std::vector<std::string> corpus_names() {
  std::vector<std::string> names;
  for (const CorpusLayout& layout : kCorpora) names.emplace_back(layout.corpus);
  return names;
}

const CorpusLayout& layout_of(const std::string& corpus) {
  const auto* const found = std::ranges::find(kCorpora, corpus, &CorpusLayout::corpus);
  check(found != kCorpora.end(), ErrorKind::kUsage, "[translation] corpus: {}",
        unknown_name(corpus, corpus_names()));
  return *found;
}

std::pair<CorpusSide, CorpusSide> sides_of(const CorpusLayout& layout, std::string_view languages) {
  if (layout.languages[0].empty()) {
    const std::size_t hyphen = languages.find('-');
    const std::string from(languages.substr(0, hyphen));
    const std::string into(hyphen == languages.npos ? "" : languages.substr(hyphen + 1));
    check(!from.empty() && !into.empty() && from != into && languages.find('/') == languages.npos,
          ErrorKind::kUsage,
          "[translation] languages: expected two names of languages such as fr-en, got '{}'",
          languages);
    return {{from, from}, {into, into}};
  }
  const CorpusSide first{std::string(layout.languages[0]), std::string(layout.names[0])};
  const CorpusSide second{std::string(layout.languages[1]), std::string(layout.names[1])};
  if (languages == first.language + "-" + second.language) return {first, second};
  if (languages == second.language + "-" + first.language) return {second, first};
  fail(ErrorKind::kUsage, "[translation] languages: expected {0}-{1} or {1}-{0} of {2}, got '{3}'",
       first.language, second.language, layout.corpus, languages);
}

std::string file_name(const CorpusLayout& layout, std::string_view split, std::string_view name) {
  return fmt::format(fmt::runtime(layout.pattern), split, name);
}

fs::path find_folder(const fs::path& folder, const CorpusLayout& layout,
                     const std::vector<std::string>& files) {
  std::vector<fs::path> places{folder};
  std::string hint;
  if (!layout.folder.empty()) {
    const fs::path own(layout.folder);
    places.insert(places.end(), {folder / own, folder / "translation" / own});
    hint = fmt::format(", there or in its folder {0} or translation/{0}", layout.folder);
  }
  for (const fs::path& place : places) {
    for (const std::string& file : files) {
      if (io::find_packed(place / file)) return place;
    }
  }
  fail(ErrorKind::kIo, "[translation] {}: expected {}, plain, .gz or .xz{}, got none of them{}",
       folder.string(), fmt::join(files, " or "), hint,
       io::near_misses(folder, {"train", "deu", "tst20"},
                       "model.corpus and model.languages say which, and there is no training "
                       "without its file"));
}

fs::path find_file(const fs::path& folder, const std::string& name) {
  return io::require_packed("translation", folder, name,
                            io::near_misses(folder, {"val", "dev", "test"}));
}

Preparation::Preparation(bool raw, bool lower_case, std::string language)
    : raw_(raw), lower_case_(lower_case), tokenize_({.language = std::move(language)}) {}

std::string Preparation::operator()(std::string_view line) const {
  if (!raw_) return std::string(line);
  std::string tokens = tokenize_(text::normalized(line, text::Normalization::kNfc));
  return lower_case_ ? text::lower_case_unicode(tokens) : tokens;
}

}  // namespace keel::models
