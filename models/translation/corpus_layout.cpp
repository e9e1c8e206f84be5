#include "models/translation/corpus_layout.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "frontend/io/near_miss.h"
#include "frontend/io/packed_file.h"
#include "frontend/text/punctuation.h"
#include "frontend/text/unicode.h"
#include "src/core/error.h"
#include "src/core/nearest.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::array<CorpusLayout, 6> kCorpora = {
    {{"files",
      "",
      "{0}.{1}",
      {"train", "valid|val|dev", "test"},
      {"", ""},
      {"", ""},
      true,
      {"newstest2013", "newstest2014"}},
     {"multi30k",
      "multi30k",
      "{0}.{1}",
      {"train", "val", "test_2016_flickr"},
      {"de", "en"},
      {"de", "en"},
      true,
      {}},
     {"iwslt14",
      "iwslt14-de-en",
      "{0}.{1}",
      {"train|train-sample", "valid", "test"},
      {"de", "en"},
      {"de", "en"},
      false,
      {}},
     {"iwslt15",
      "iwslt15-en-vi",
      "{0}.{1}",
      {"train", "tst2012", "tst2013"},
      {"en", "vi"},
      {"en", "vi"},
      false,
      {}},
     {"wmt",
      "wmt-sample-en-de",
      "{1}-{0}.txt",
      {"train", "val", "test"},
      {"en", "de"},
      {"src", "targ"},
      false,
      {"newstest2013", "newstest2014"}},
     {"tatoeba", "tatoeba-en-de", "deu.txt", {"", "", ""}, {"en", "de"}, {"en", "de"}, true, {}}}};

constexpr std::string_view kSgm = ".sgm";

// The name of a file without the ending of its packing.
std::string unpacked_name(const fs::path& file) {
  const bool is_packed = file.extension() == ".gz" || file.extension() == ".xz";
  return is_packed ? file.stem().string() : file.filename().string();
}

bool may_be_sgm(const CorpusLayout& layout, bool tokenized) {
  return !tokenized && !layout.released[0].empty();
}

SplitNames names_of_sgm(const std::string& set, const CorpusSide& source,
                        const CorpusSide& target) {
  return {fmt::format("{}-src.{}{}", set, source.language, kSgm),
          fmt::format("{}-ref.{}{}", set, target.language, kSgm)};
}

// The sets of WMT that may be a split's. Their names may say both languages, English last.
std::vector<std::string> released_sets(const CorpusLayout& layout, task::Split split,
                                       const std::string& one, const std::string& other) {
  if (split == task::Split::kTrain) return {};
  const bool is_valid = split == task::Split::kValid;
  const std::string_view set = layout.released[is_valid ? 0 : 1];
  std::vector<std::string> sets;
  for (const char* folder : {"", is_valid ? "dev/" : "test-full/"}) {
    for (const std::string& languages : {std::string(), "-" + one + other, "-" + other + one}) {
      sets.push_back(fmt::format("{}{}{}", folder, set, languages));
    }
  }
  return sets;
}

// NAME, where the file's name has these parts around it.
std::optional<std::string> name_within(const std::string& file, const std::string& pattern) {
  const std::string before = pattern.substr(0, pattern.find('\n')),
                    after = pattern.substr(before.size() + 1);
  const bool fits = file.size() > before.size() + after.size() && file.starts_with(before) &&
                    file.ends_with(after);
  if (!fits) return std::nullopt;
  return file.substr(before.size(), file.size() - before.size() - after.size());
}

std::vector<std::string> names_in(std::string_view alternatives) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= alternatives.size();) {
    const std::size_t end = std::min(alternatives.find('|', begin), alternatives.size());
    names.emplace_back(alternatives.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

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

bool is_sgm(const fs::path& file) { return unpacked_name(file).ends_with(kSgm); }

std::vector<SplitNames> split_names(const CorpusLayout& layout, task::Split split,
                                    const std::pair<CorpusSide, CorpusSide>& sides,
                                    bool tokenized) {
  const auto& [source, target] = sides;
  std::vector<SplitNames> all;
  for (const std::string& name : names_in(layout.splits[static_cast<std::size_t>(split)])) {
    all.push_back({file_name(layout, name, source.name), file_name(layout, name, target.name)});
  }
  if (!may_be_sgm(layout, tokenized)) return all;
  for (const std::string& set : released_sets(layout, split, source.language, target.language)) {
    all.push_back(names_of_sgm(set, source, target));
  }
  return all;
}

SplitNames names_around(const CorpusLayout& layout, const fs::path& file,
                        const std::pair<CorpusSide, CorpusSide>& sides, bool tokenized) {
  const auto& [source, target] = sides;
  const std::string name = unpacked_name(file);
  for (const CorpusSide& side : {source, target}) {
    if (const auto stem = name_within(name, file_name(layout, "\n", side.name))) {
      return {file_name(layout, *stem, source.name), file_name(layout, *stem, target.name)};
    }
  }
  const SplitNames released = names_of_sgm("\n", source, target);
  for (const std::string& pattern : {released.source, released.target}) {
    const auto set = name_within(name, pattern);
    if (set && may_be_sgm(layout, tokenized)) return names_of_sgm(*set, source, target);
  }
  fail(ErrorKind::kIo,
       "[translation] {}: expected a folder, or one side of a test set, {} with {} beside it, "
       "plain, .gz or .xz",
       file.string(), file_name(layout, "NAME", source.name),
       file_name(layout, "NAME", target.name));
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
  std::vector<std::string> plain;  // names of WMT's own files would hide them
  std::ranges::copy_if(files, std::back_inserter(plain), std::not_fn(is_sgm));
  fail(ErrorKind::kIo, "[translation] {}: expected {}, plain, .gz or .xz{}, got none of them{}",
       folder.string(), fmt::join(plain, " or "), hint,
       io::near_misses(folder, {"train", "deu", "tst20"},
                       "model.corpus and model.languages say which, and there is no training "
                       "without its file"));
}

fs::path find_file(const fs::path& folder, const std::string& name) {
  return io::require_packed("translation", folder, name,
                            io::near_misses(folder, {"val", "dev", "test"}));
}

Preparation::Preparation(bool raw, bool lower_case, std::string language)
    : raw_(raw),
      lower_case_(lower_case),
      language_(std::move(language)),
      tokenize_({.language = language_}) {}

Preparation Preparation::of_wmt(std::string language) {
  Preparation prepare(/*raw=*/true, /*lower_case=*/false, std::move(language));
  prepare.is_of_wmt_ = true;
  prepare.tokenize_ =
      text::MosesTokenizer({.language = prepare.language_, .aggressive_hyphens = true});
  return prepare;
}

std::string Preparation::operator()(std::string_view line) const {
  if (!raw_) return std::string(line);
  std::string text = text::normalized(line, text::Normalization::kNfc);
  if (is_of_wmt_) {
    text = text::with_printable_characters(text::normalized_punctuation(text, language_));
  }
  std::string tokens = tokenize_(text);
  return lower_case_ ? text::lower_case_unicode(tokens) : tokens;
}

}  // namespace keel::models
