#include "models/translation/files.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "frontend/io/message.h"
#include "frontend/io/packed_file.h"
#include "frontend/io/visible_files.h"
#include "frontend/text/line_reader.h"
#include "frontend/text/nonbreaking_prefixes.h"
#include "frontend/text/tagged_text.h"
#include "frontend/text/text_file.h"
#include "models/translation/corpus_layout.h"
#include "models/translation/tatoeba.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxSideBytes = std::int64_t{1} << 32, kMaxSgmBytes = std::int64_t{1} << 30;
constexpr std::string_view kSample = "train-sample";

template <class Prepare>
std::vector<std::string> read_side(const fs::path& path, const Prepare& prepare) {
  std::vector<std::string> sentences;
  if (is_sgm(path)) {
    sentences = text::sentences_of_sgm(text::read_text(path, kMaxSgmBytes), path.string());
    for (std::string& sentence : sentences) sentence = prepare(sentence);
    return sentences;
  }
  text::LineReader reader(path, kMaxSideBytes);
  while (const std::optional<text::Line> line = reader.next()) {
    sentences.push_back(prepare(line->text));
  }
  check(!sentences.empty(), ErrorKind::kBadInput,
        "[translation] {}: expected content, got an empty file", path.string());
  return sentences;
}

// The splits of a corpus of two files each.
class SplitFiles {
 public:
  SplitFiles(const fs::path& folder, const CorpusLayout& layout, const CorpusOptions& options)
      : layout_(layout),
        raw_(layout.raw && !options.tokenized),
        lower_case_(options.lower_case),
        sides_(sides_of(layout, options.languages)),
        tokenized_(options.tokenized) {
    if (options.only && fs::is_regular_file(folder)) {
      given_ = names_around(layout, folder, sides_, tokenized_);
      place_ = folder.parent_path();
    } else {
      place_ = find_folder(folder, layout, sources(options.only.value_or(task::Split::kTrain)));
    }
    if (options.only) return;
    // A test set is not read before it is asked for, but that it is missing should not be found
    // after hours of training.
    for (const CorpusSide& side : {sides_.first, sides_.second}) {
      path(task::Split::kTest, side);
      if (raw_ && text::NonbreakingPrefixes::lacks(side.language)) {
        io::warn(fmt::format(
            "keel has no abbreviations of '{0}' and takes those of English, so that full stops "
            "after abbreviations differ from Moses; keel text tokenize --prefixes and "
            "model.tokenized=true give Moses' tokens",
            side.language));
      }
    }
  }

  const fs::path& place() const { return place_; }
  bool is_raw() const { return raw_; }
  // Whether there is only a sample to train on.
  bool is_sample() const {
    return names(task::Split::kTrain).source == file_name(layout_, kSample, sides_.first.name);
  }
  std::string sources_text(task::Split split) const {
    return fmt::format("{} and {}", path(split, sides_.first).string(),
                       path(split, sides_.second).filename().string());
  }
  SentencePairs read(task::Split split) const {
    const fs::path source = path(split, sides_.first), target = path(split, sides_.second);
    SentencePairs pairs{read_side(source, preparation(source, sides_.first.language)),
                        read_side(target, preparation(target, sides_.second.language))};
    text::expect_pairs(pairs, source.string(), target.string());
    return pairs;
  }
  std::vector<std::string> raw_targets(task::Split split) const {
    return read_side(path(split, sides_.second), [](auto line) { return std::string(line); });
  }

 private:
  // A file with tags holds raw text, also where the other files are tokens.
  Preparation preparation(const fs::path& file, const std::string& language) const {
    const bool is_of_wmt = is_sgm(file) && !raw_;
    return is_of_wmt ? Preparation::of_wmt(language) : Preparation(raw_, lower_case_, language);
  }
  // The split's files: the first ones whose source is there.
  SplitNames names(task::Split split) const {
    if (given_) return *given_;
    const std::vector<SplitNames> all = split_names(layout_, split, sides_, tokenized_);
    const auto found = std::ranges::find_if(all, [&](const SplitNames& names) {
      return io::find_packed(place_ / names.source).has_value();
    });
    return found == all.end() ? all.front() : *found;
  }
  // The source's files of a split, of which one must be there.
  std::vector<std::string> sources(task::Split split) const {
    std::vector<std::string> files;
    for (const SplitNames& names : split_names(layout_, split, sides_, tokenized_)) {
      files.push_back(names.source);
    }
    return files;
  }
  fs::path path(task::Split split, const CorpusSide& side) const {
    const SplitNames files = names(split);
    return find_file(place_, side.language == sides_.first.language ? files.source : files.target);
  }

  const CorpusLayout& layout_;
  bool raw_, lower_case_;
  std::pair<CorpusSide, CorpusSide> sides_;
  bool tokenized_;
  std::optional<SplitNames> given_;  // of a file that is evaluated; nothing: the splits' own names
  fs::path place_;
};

ParallelCorpus read_files(const fs::path& folder, const CorpusLayout& layout,
                          const CorpusOptions& options) {
  const SplitFiles files(folder, layout, options);
  ParallelCorpus corpus;
  corpus.name = options.languages;
  if (files.is_raw()) {
    corpus.raw_targets = [files](task::Split split) { return files.raw_targets(split); };
  }
  if (options.only) {
    corpus.origin = files.sources_text(*options.only);
    corpus.put(*options.only, files.read(*options.only));
    return corpus;
  }
  corpus.origin =
      fmt::format("{}{}", files.place().string(), files.is_sample() ? " (a sample)" : "");
  corpus.train = files.read(task::Split::kTrain);
  corpus.valid = files.read(task::Split::kValid);
  corpus.test = [files] { return files.read(task::Split::kTest); };
  return corpus;
}

// The parts that follow "train." in the names of a folder's files, in order.
std::vector<std::string> languages_of_files(const fs::path& folder) {
  constexpr std::string_view kTrain = "train.";
  std::set<std::string> languages;
  std::error_code error;
  for (const fs::path& entry : io::visible_entries(folder, error)) {
    std::string name = entry.filename();
    if (name.ends_with(".gz") || name.ends_with(".xz")) name.resize(name.size() - 3);
    const bool fits = name.starts_with(kTrain) && name.size() > kTrain.size() &&
                      name.find('.', kTrain.size()) == name.npos;
    if (fits) languages.insert(name.substr(kTrain.size()));
  }
  return {languages.begin(), languages.end()};
}

// The release of IWSLT14, before anything was done to it.
std::optional<fs::path> find_tagged(const fs::path& folder) {
  for (const char* own : {"", "de-en", "iwslt14-de-en", "translation/iwslt14-de-en"}) {
    const fs::path place = own[0] == '\0' ? folder : folder / own;
    if (io::find_packed(place / "train.tags.de-en.de")) return place;
  }
  return std::nullopt;
}

ParallelCorpus read_tagged(const fs::path& place, const CorpusLayout& layout,
                           const CorpusOptions& options) {
  const auto [source, target] = sides_of(layout, options.languages);
  text::Iwslt14 all = text::prepare_iwslt14(place, source.language, target.language);
  ParallelCorpus corpus;
  corpus.name = options.languages;
  corpus.origin = fmt::format("{} (the release)", place.string());
  corpus.train = std::move(all.train);
  corpus.valid = std::move(all.valid);
  corpus.test = [test = std::move(all.test)] { return test; };
  return corpus;
}

}  // namespace

std::string languages_in(const fs::path& folder, const std::string& corpus) {
  const CorpusLayout& layout = layout_of(corpus);
  std::vector<std::string> found;
  for (const std::string_view language : layout.languages) found.emplace_back(language);
  if (found[0].empty()) found = languages_of_files(folder);
  return found.size() == 2 ? found[0] + "-" + found[1] : CorpusOptions().languages;
}

ParallelCorpus read_corpus(const fs::path& folder, const CorpusOptions& options) {
  const CorpusLayout& layout = layout_of(options.corpus);
  check(!options.tokenized || layout.corpus == "files", ErrorKind::kUsage,
        "[translation] tokenized: the corpus {} determines it; expected it only with the corpus "
        "files",
        layout.corpus);
  if (layout.corpus == "tatoeba") return read_tatoeba(folder, layout, options);
  if (layout.corpus == "iwslt14") {
    if (const auto place = find_tagged(folder)) return read_tagged(*place, layout, options);
  }
  return read_files(folder, layout, options);
}

}  // namespace keel::models
