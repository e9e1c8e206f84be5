#include "models/translation/files.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "frontend/data/permutation.h"
#include "frontend/io/packed_file.h"
#include "frontend/text/lines.h"
#include "frontend/text/moses_tokenizer.h"
#include "frontend/text/text_file.h"
#include "frontend/text/unicode.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"
#include "src/core/nearest.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxSideBytes = std::int64_t{1} << 32;
constexpr std::uint32_t kTatoebaSplit = stream_of("translation.tatoeba");
constexpr std::int64_t kTatoebaPart = 50;  // one in so many for validation, and for testing

// Where a data set lies and how its files are called. `{}` stands for the split, then the language.
struct CorpusLayout {
  std::string_view corpus, title, folder, pattern;
  std::array<std::string_view, 3> splits;     // train, valid, test
  std::array<std::string_view, 2> languages;  // that it has
  std::array<std::string_view, 2> names;      // by which its files call them
  bool raw;
};

constexpr std::array<CorpusLayout, 5> kCorpora = {{{"multi30k",
                                                    "Multi30k",
                                                    "multi30k",
                                                    "{}.{}",
                                                    {"train", "val", "test_2016_flickr"},
                                                    {"de", "en"},
                                                    {"de", "en"},
                                                    true},
                                                   {"iwslt14",
                                                    "IWSLT14",
                                                    "iwslt14-de-en",
                                                    "{}.{}",
                                                    {"train", "valid", "test"},
                                                    {"de", "en"},
                                                    {"de", "en"},
                                                    false},
                                                   {"iwslt15",
                                                    "IWSLT15",
                                                    "iwslt15-en-vi",
                                                    "{}.{}",
                                                    {"train", "tst2012", "tst2013"},
                                                    {"en", "vi"},
                                                    {"en", "vi"},
                                                    false},
                                                   {"wmt",
                                                    "WMT",
                                                    "wmt-sample-en-de",
                                                    "{1}-{0}.txt",
                                                    {"train", "val", "test"},
                                                    {"en", "de"},
                                                    {"src", "targ"},
                                                    false},
                                                   {"tatoeba",
                                                    "Tatoeba",
                                                    "tatoeba-en-de",
                                                    "deu.txt",
                                                    {"", "", ""},
                                                    {"en", "de"},
                                                    {"en", "de"},
                                                    true}}};

const CorpusLayout& layout_of(const std::string& corpus) {
  const auto* const found = std::ranges::find(kCorpora, corpus, &CorpusLayout::corpus);
  check(found != kCorpora.end(), ErrorKind::kUsage, "[translation] corpus: {}",
        unknown_name(corpus, corpus_names()));
  return *found;
}

// A side of a corpus: its language, and by which name its files call that.
struct CorpusSide {
  std::string language, name;
};

std::pair<CorpusSide, CorpusSide> sides_of(const CorpusLayout& layout, std::string_view languages) {
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

// The first of the folders that holds one of the files; nothing says that better than what lacks.
fs::path find_folder(const fs::path& folder, const CorpusLayout& layout,
                     const std::vector<std::string>& files) {
  const fs::path own(layout.folder);
  for (const fs::path& place : {folder, folder / own, folder / "translation" / own}) {
    for (const std::string& file : files) {
      if (io::find_packed(place / file)) return place;
    }
  }
  fail(ErrorKind::kIo,
       "[translation] {}: expected {}, plain, .gz or .xz, there or in its folder {} or "
       "translation/{}, got none of them",
       folder.string(), fmt::join(files, " or "), layout.folder, layout.folder);
}

fs::path find_side(const fs::path& folder, const std::string& name) {
  const std::optional<fs::path> found = io::find_packed(folder / name);
  check(found.has_value(), ErrorKind::kIo,
        "[translation] {}: expected {}, {}.gz or {}.xz, got none of them", folder.string(), name,
        name, name);
  return *found;
}

// What is done to raw text.
class Preparation {
 public:
  Preparation(const CorpusLayout& layout, const CorpusOptions& options, std::string language)
      : raw_(layout.raw),
        lower_(options.lower_case),
        tokenize_({.language = std::move(language)}) {}

  std::string operator()(std::string_view line) const {
    if (!raw_) return std::string(line);
    std::string tokens = tokenize_(text::normalized(line, text::Normalization::kNfc));
    return lower_ ? text::lower_case_unicode(tokens) : tokens;
  }

 private:
  bool raw_, lower_;
  text::MosesTokenizer tokenize_;
};

std::vector<std::string> read_side(const fs::path& path, const Preparation& prepare) {
  const std::string content = text::read_text(path, kMaxSideBytes);
  std::vector<std::string> sentences;
  text::Lines lines(content);
  while (const std::optional<text::Line> line = lines.next()) {
    sentences.push_back(prepare(line->text));
  }
  return sentences;
}

// Reads a split of two files.
class SplitReader {
 public:
  SplitReader(const CorpusLayout& layout, const CorpusOptions& options)
      : layout_(layout), options_(options), sides_(sides_of(layout, options.languages)) {}

  // The files of the training split, of which one must be there.
  std::vector<std::string> train_files() const {
    std::vector<std::string> files{file_name(layout_, layout_.splits[0], sides_.first.name)};
    if (layout_.corpus == "iwslt14") {
      files.push_back(file_name(layout_, "train-sample", sides_.first.name));
    }
    return files;
  }

  SentencePairs read(const fs::path& folder, std::string_view split) const {
    const fs::path source = find_side(folder, file_name(layout_, split, sides_.first.name));
    const fs::path target = find_side(folder, file_name(layout_, split, sides_.second.name));
    SentencePairs pairs{read_side(source, Preparation(layout_, options_, sides_.first.language)),
                        read_side(target, Preparation(layout_, options_, sides_.second.language))};
    text::expect_pairs(pairs, source.string(), target.string());
    return pairs;
  }

 private:
  const CorpusLayout& layout_;
  CorpusOptions options_;
  std::pair<CorpusSide, CorpusSide> sides_;
};

ParallelCorpus read_files(const fs::path& folder, const CorpusLayout& layout,
                          const CorpusOptions& options) {
  const SplitReader reader(layout, options);
  const std::vector<std::string> train = reader.train_files();
  const fs::path place = find_folder(folder, layout, train);
  const bool whole = io::find_packed(place / train.front()).has_value();
  ParallelCorpus corpus;
  corpus.name = fmt::format("{} {}", layout.title, options.languages);
  corpus.origin = fmt::format("{}{}", place.string(), whole ? "" : " (a sample)");
  corpus.train = reader.read(place, whole ? layout.splits[0] : "train-sample");
  corpus.valid = reader.read(place, layout.splits[1]);
  corpus.test = [reader, place, split = layout.splits[2]] { return reader.read(place, split); };
  return corpus;
}

// Tatoeba ------------------------------------------------------------------------------------

// The translations of each English sentence, in the order of the file.
struct Grouped {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
};

Grouped read_tatoeba(const fs::path& path) {
  const std::string content = text::read_text(path, kMaxSideBytes);
  Grouped result;
  std::map<std::string, std::size_t, std::less<>> places;
  text::Lines lines(content);
  while (const std::optional<text::Line> line = lines.next()) {
    const std::size_t tab = line->text.find('\t');
    check(tab != std::string_view::npos, ErrorKind::kBadInput,
          "[translation] {}: expected English, a tab and German, got '{}'",
          text::place(path.string(), line->number), text::clipped(line->text, 60));
    const std::string_view rest = line->text.substr(tab + 1);
    const auto [place, is_new] =
        places.try_emplace(std::string(line->text.substr(0, tab)), result.groups.size());
    if (is_new) result.groups.push_back({place->first, {}});
    // Newer files say behind another tab who wrote the sentence.
    result.groups[place->second].second.emplace_back(rest.substr(0, rest.find('\t')));
  }
  return result;
}

ParallelCorpus split_tatoeba(const fs::path& folder, const CorpusLayout& layout,
                             const CorpusOptions& options) {
  const fs::path place = find_folder(folder, layout, {std::string(layout.pattern)});
  const Grouped all = read_tatoeba(find_side(place, std::string(layout.pattern)));
  const auto [from, into] = sides_of(layout, options.languages);
  const bool english_first = from.language == "en";
  const Preparation english(layout, options, "en"), german(layout, options, "de");
  const std::int64_t n = std::ssize(all.groups), part = n / kTatoebaPart;
  check(part >= 1, ErrorKind::kBadInput, "[translation] {}: expected at least {} sentences, got {}",
        place.string(), kTatoebaPart, n);
  std::array<SentencePairs, 3> splits;  // train, valid, test
  const std::vector<std::int64_t> order = data::permutation(n, Philox(options.seed, kTatoebaSplit));
  for (std::int64_t i = 0; i < n; ++i) {
    SentencePairs& split = splits[i < part ? 1 : i < 2 * part ? 2 : 0];
    const auto group = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
    const std::string said = english(all.groups[group].first);
    for (const std::string& translation : all.groups[group].second) {
      (english_first ? split.source : split.target).push_back(said);
      (english_first ? split.target : split.source).push_back(german(translation));
    }
  }
  ParallelCorpus corpus;
  corpus.name = fmt::format("{} {}", layout.title, options.languages);
  corpus.origin = fmt::format("{} (split {})", place.string(), options.seed);
  corpus.train = std::move(splits[0]);
  corpus.valid = std::move(splits[1]);
  corpus.test = [test = std::move(splits[2])] { return test; };
  return corpus;
}

}  // namespace

std::vector<std::string> corpus_names() {
  std::vector<std::string> names;
  for (const CorpusLayout& layout : kCorpora) names.emplace_back(layout.corpus);
  return names;
}

ParallelCorpus read_corpus(const fs::path& folder, const CorpusOptions& options) {
  const CorpusLayout& layout = layout_of(options.corpus);
  return layout.corpus == "tatoeba" ? split_tatoeba(folder, layout, options)
                                    : read_files(folder, layout, options);
}

}  // namespace keel::models
