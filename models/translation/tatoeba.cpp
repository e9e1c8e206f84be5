#include "models/translation/tatoeba.h"

#include <map>
#include <numeric>

#include "frontend/data/permutation.h"
#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxTatoebaBytes = std::int64_t{1} << 32;
constexpr std::uint32_t kTatoebaSplit = stream_of("translation.tatoeba");
constexpr std::int64_t kTatoebaPart = 50;  // one in so many for validation, and for testing

// An English sentence and its translations, in the order of the file.
using Groups = std::vector<std::pair<std::string, std::vector<std::string>>>;

Groups read_groups(const fs::path& path) {
  const std::string content = text::read_text(path, kMaxTatoebaBytes);
  Groups groups;
  std::map<std::string, std::size_t, std::less<>> places;
  text::Lines lines(content);
  while (const std::optional<text::Line> line = lines.next()) {
    const std::size_t tab = line->text.find('\t');
    check(tab != std::string_view::npos, ErrorKind::kBadInput,
          "[translation] {}: expected English, a tab and German, got '{}'",
          text::place(path.string(), line->number), text::clipped(line->text, 60));
    const std::string_view rest = line->text.substr(tab + 1);
    const auto [place, is_new] =
        places.try_emplace(std::string(line->text.substr(0, tab)), groups.size());
    if (is_new) groups.push_back({place->first, {}});
    // Newer files say after another tab who wrote the sentence.
    groups[place->second].second.emplace_back(rest.substr(0, rest.find('\t')));
  }
  return groups;
}

struct Split {
  SentencePairs pairs = {};
  std::vector<std::string> raw_targets = {};
};

}  // namespace

ParallelCorpus read_tatoeba(const fs::path& folder, const CorpusLayout& layout,
                            const CorpusOptions& options) {
  const bool is_whole = options.only && fs::is_regular_file(folder);
  const fs::path place =
      is_whole ? folder : find_folder(folder, layout, {std::string(layout.pattern)});
  const Groups groups =
      read_groups(is_whole ? folder : find_file(place, std::string(layout.pattern)));
  const bool english_first = sides_of(layout, options.languages).first.language == "en";
  const Preparation english(true, options.lower_case, "en"), german(true, options.lower_case, "de");
  const std::int64_t n = std::ssize(groups), part = is_whole ? n : n / kTatoebaPart;
  check(part >= 1, ErrorKind::kBadInput, "[translation] {}: expected at least {} sentences, got {}",
        place.string(), kTatoebaPart, n);
  Split train, valid, test;
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  if (!is_whole) order = data::permutation(n, Philox(options.seed, kTatoebaSplit));
  for (std::int64_t i = 0; i < n; ++i) {
    Split& split = i < part ? valid : i < 2 * part ? test : train;
    const auto& [said, translations] = groups[std::size_t(order[std::size_t(i)])];
    const std::string prepared = english(said);
    for (const std::string& translation : translations) {
      (english_first ? split.pairs.source : split.pairs.target).push_back(prepared);
      (english_first ? split.pairs.target : split.pairs.source).push_back(german(translation));
      if (&split != &train) split.raw_targets.push_back(english_first ? translation : said);
    }
  }
  ParallelCorpus corpus;
  corpus.name = options.languages;
  corpus.origin = fmt::format("{} (split {})", place.string(), options.seed);
  if (is_whole) {
    corpus.origin = place.string();
    corpus.put(*options.only, std::move(valid.pairs));
    corpus.raw_targets = [raw = std::move(valid.raw_targets)](task::Split) { return raw; };
    return corpus;
  }
  corpus.train = std::move(train.pairs);
  corpus.valid = std::move(valid.pairs);
  corpus.raw_targets = [of_valid = std::move(valid.raw_targets),
                        of_test = std::move(test.raw_targets)](task::Split split) {
    return split == task::Split::kValid ? of_valid : of_test;
  };
  corpus.test = [pairs = std::move(test.pairs)] { return pairs; };
  return corpus;
}

}  // namespace keel::models
