#include "models/translation/files.h"

#include <optional>
#include <set>
#include <utility>

#include "frontend/io/message.h"
#include "frontend/io/packed_file.h"
#include "frontend/io/visible_files.h"
#include "frontend/text/line_reader.h"
#include "frontend/text/nonbreaking_prefixes.h"
#include "models/translation/corpus_layout.h"
#include "models/translation/tatoeba.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxSideBytes = std::int64_t{1} << 32;
constexpr std::string_view kSample = "train-sample";

template <class Prepare>
std::vector<std::string> read_side(const fs::path& path, const Prepare& prepare) {
  text::LineReader reader(path, kMaxSideBytes);
  std::vector<std::string> sentences;
  while (const std::optional<text::Line> line = reader.next()) {
    sentences.push_back(prepare(line->text));
  }
  check(!sentences.empty(), ErrorKind::kBadInput,
        "[translation] {}: expected content, got an empty file", path.string());
  return sentences;
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

// The splits of a corpus of two files each.
class SplitFiles {
 public:
  SplitFiles(const fs::path& folder, const CorpusLayout& layout, const CorpusOptions& options)
      : layout_(layout),
        raw_(layout.raw && !options.tokenized),
        lower_case_(options.lower_case),
        sides_(sides_of(layout, options.languages)),
        stem_(options.only && fs::is_regular_file(folder) ? stem_of(folder) : ""),
        place_(stem_.empty() ? find_folder(folder, layout,
                                           sources(options.only.value_or(task::Split::kTrain)))
                             : folder.parent_path()) {
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
  // The name of the split's files.
  std::string name(task::Split split) const {
    if (!stem_.empty()) return stem_;
    const std::vector<std::string> names = names_in(alternatives(split));
    for (const std::string& name : names) {
      if (io::find_packed(place_ / file_name(layout_, name, sides_.first.name))) return name;
    }
    return names.front();
  }
  std::string sources_text(task::Split split) const {
    return fmt::format("{} and {}", path(split, sides_.first).string(),
                       path(split, sides_.second).filename().string());
  }
  SentencePairs read(task::Split split) const {
    const fs::path source = path(split, sides_.first), target = path(split, sides_.second);
    SentencePairs pairs{read_side(source, Preparation(raw_, lower_case_, sides_.first.language)),
                        read_side(target, Preparation(raw_, lower_case_, sides_.second.language))};
    text::expect_pairs(pairs, source.string(), target.string());
    return pairs;
  }
  std::vector<std::string> raw_targets(task::Split split) const {
    return read_side(path(split, sides_.second), [](auto line) { return std::string(line); });
  }

 private:
  std::string_view alternatives(task::Split split) const {
    return layout_.splits[static_cast<std::size_t>(split)];
  }
  // The source's files of a split, of which one must be there.
  std::vector<std::string> sources(task::Split split) const {
    std::vector<std::string> files = names_in(alternatives(split));
    for (std::string& file : files) file = file_name(layout_, file, sides_.first.name);
    return files;
  }
  // What stands for the split in the name of one side's file, as "test" in test.de.
  std::string stem_of(const fs::path& file) const {
    const bool is_packed = file.extension() == ".gz" || file.extension() == ".xz";
    const std::string name = is_packed ? file.stem() : file.filename();
    for (const CorpusSide& side : {sides_.first, sides_.second}) {
      const std::string around = file_name(layout_, "\n", side.name);
      const std::string before = around.substr(0, around.find('\n')),
                        after = around.substr(before.size() + 1);
      const bool fits = name.size() > before.size() + after.size() && name.starts_with(before) &&
                        name.ends_with(after);
      if (fits) return name.substr(before.size(), name.size() - before.size() - after.size());
    }
    fail(ErrorKind::kIo,
         "[translation] {}: expected a folder, or one side of a test set, {} with {} beside it, "
         "plain, .gz or .xz",
         file.string(), file_name(layout_, "NAME", sides_.first.name),
         file_name(layout_, "NAME", sides_.second.name));
  }
  fs::path path(task::Split split, const CorpusSide& side) const {
    return find_file(place_, file_name(layout_, name(split), side.name));
  }

  const CorpusLayout& layout_;
  bool raw_, lower_case_;
  std::pair<CorpusSide, CorpusSide> sides_;
  std::string stem_;  // of a file that is evaluated; empty: the splits' own names
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
  const bool whole = files.name(task::Split::kTrain) != kSample;
  corpus.origin = fmt::format("{}{}", files.place().string(), whole ? "" : " (a sample)");
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
        "[translation] tokenized: of {} it is known; expected it with the corpus files alone",
        layout.corpus);
  if (layout.corpus == "tatoeba") return read_tatoeba(folder, layout, options);
  if (layout.corpus == "iwslt14") {
    if (const auto place = find_tagged(folder)) return read_tagged(*place, layout, options);
  }
  return read_files(folder, layout, options);
}

}  // namespace keel::models
