#include "models/text_classifier/own_files.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "frontend/data/permutation.h"
#include "frontend/io/near_miss.h"
#include "frontend/io/packed_file.h"
#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "models/text_classifier/labelled_text.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFewestToHoldOut = 10;
constexpr std::uint32_t kHeldOutStream = stream_of("text_classifier.files");

using Texts = std::vector<LabelledText>;

// The one file of a split, or nothing.
std::optional<fs::path> find_split(const fs::path& folder,
                                   std::initializer_list<std::string_view> names) {
  std::vector<fs::path> found;
  for (const std::string_view name : names) {
    for (const std::string_view ending : kLabelledEndings) {
      const auto path = io::find_packed(folder / fmt::format("{}{}", name, ending));
      if (path) found.push_back(*path);
    }
  }
  check(found.size() <= 1, ErrorKind::kBadInput,
        "[text_classifier] {}: expected one file for {}, got {} and {}", folder.string(),
        *names.begin(), found.empty() ? "" : found.front().filename().string(),
        found.empty() ? "" : found.back().filename().string());
  return found.empty() ? std::nullopt : std::optional(found.front());
}

// The file of a split; a file in place of a folder is that of any.
std::optional<fs::path> file_of_split(const fs::path& source, task::Split split) {
  if (std::error_code ignored; fs::is_regular_file(source, ignored)) return source;
  if (split == task::Split::kTrain) return find_split(source, {"train"});
  return split == task::Split::kTest ? find_split(source, {"test"})
                                     : find_split(source, {"valid", "val", "dev"});
}

fs::path find_training(const fs::path& folder, const OwnFilesOptions& options) {
  const std::optional<fs::path> train = file_of_split(folder, task::Split::kTrain);
  const bool tests = options.only == task::Split::kTest;
  check(train.has_value(), ErrorKind::kIo,
        "[text_classifier] {}: expected {}train.txt, train.tsv, train.csv or train.jsonl, plain, "
        ".gz or .xz, got none of them{}",
        folder.string(), tests ? "test.txt, test.tsv, test.csv or test.jsonl, or " : "",
        io::near_misses(folder, {"train", ".txt", ".tsv", ".csv", ".json"},
                        "no file named train.* with one of these extensions"));
  return *train;
}

bool is_number(const std::string& label) {
  return std::ranges::all_of(label, [](char c) { return c >= '0' && c <= '9'; });
}

// "9" comes before "10", and numbers come before words.
bool comes_before(const std::string& a, const std::string& b) {
  const auto key = [](const std::string& label) {
    const bool number = is_number(label);
    return std::tuple(!number, number ? label.size() : 0, std::string_view(label));
  };
  return key(a) < key(b);
}

std::vector<std::string> labels_in(const Texts& texts) {
  std::set<std::string> seen;
  for (const LabelledText& text : texts) seen.insert(text.label);
  std::vector<std::string> labels(seen.begin(), seen.end());
  std::ranges::sort(labels, comes_before);
  return labels;
}

std::vector<std::string> words_in(std::string text, bool lower_case) {
  std::ranges::replace_if(
      text, [](char c) { return c >= 0 && c < ' '; }, ' ');  // ends of lines within a field
  if (lower_case) text = text::lower_case(text);
  const std::vector<std::string_view> words = text::words_of(text);
  return {words.begin(), words.end()};
}

// Gives labels their places among the known ones.
class Numbering {
 public:
  Numbering(std::vector<std::string> labels, bool lower_case)
      : labels_(std::move(labels)), lower_case_(lower_case) {
    for (std::size_t i = 0; i < labels_.size(); ++i) places_[labels_[i]] = std::int32_t(i);
  }

  Sentences operator()(Texts texts, const std::string& file) const {
    Sentences sentences;
    for (LabelledText& text : texts) {
      const auto place = places_.find(text.label);
      check(place != places_.end(), ErrorKind::kBadInput,
            "[text_classifier] {}: expected one of the labels {}, got '{}'",
            text::place(file, text.line), shown_labels(labels_), text.label);
      sentences.push_back({place->second, words_in(std::move(text.text), lower_case_)});
    }
    return sentences;
  }

 private:
  std::vector<std::string> labels_;
  bool lower_case_;
  std::map<std::string, std::int32_t> places_;
};

// The training rows that are held out for splits without a file.
struct HeldOut {
  Texts valid, test;
  std::array<std::vector<std::int64_t>, 3> numbers;  // of each split's rows in the file
};

// Takes a tenth of the rows out for either split that needs it, drawn by the seed; whether the
// other needs one changes nothing. The order of rows stays.
HeldOut hold_out(Texts& rows, const fs::path& file, std::uint64_t seed, bool valid, bool test) {
  if (!valid && !test) return {};
  const std::int64_t n = std::ssize(rows), tenth = n / 10;
  check(n >= kFewestToHoldOut, ErrorKind::kBadInput,
        "[text_classifier] {}: expected at least {} rows, of which some are held out, got {}",
        file.string(), kFewestToHoldOut, n);
  const std::vector<std::int64_t> order = data::permutation(n, Philox(seed, kHeldOutStream));
  HeldOut held;
  Texts kept;
  const std::array<Texts*, 3> texts{&kept, &held.valid, &held.test};
  std::vector<std::size_t> parts(rows.size(), 0);
  for (std::int64_t i = 0; i < 2 * tenth; ++i) {
    if (i < tenth ? valid : test) parts[std::size_t(order[std::size_t(i)])] = i < tenth ? 1 : 2;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    texts[parts[i]]->push_back(std::move(rows[i]));
    held.numbers[parts[i]].push_back(std::int64_t(i));
  }
  rows = std::move(kept);
  return held;
}

std::string source_of(const fs::path& path, bool was_windows_1252 = false) {
  return path.string() + (was_windows_1252 ? " (Windows-1252)" : "");
}

// The split that is evaluated, all of its file.
Corpus read_one_split(const fs::path& path, const OwnFilesOptions& options) {
  LabelledFile read = read_labelled(path);
  Corpus corpus;
  corpus.origin = path.string();
  corpus.labels = options.labels.empty() ? labels_in(read.rows) : options.labels;
  corpus.files.fill(source_of(path, read.was_windows_1252));
  const Numbering numbered(corpus.labels, options.lower_case);
  corpus.put(*options.only, numbered(std::move(read.rows), path.string()));
  return corpus;
}

}  // namespace

std::string shown_labels(std::span<const std::string> labels) {
  const std::size_t most = std::min(labels.size(), kMostLabelsShown);
  const std::string first = fmt::format("{}", fmt::join(labels.first(most), ", "));
  return most == labels.size() ? first : fmt::format("{} and {} more", first, labels.size() - most);
}

bool has_own_file(const fs::path& source, task::Split split) {
  return file_of_split(source, split).has_value();
}

Corpus read_own_files(const fs::path& folder, const OwnFilesOptions& options) {
  if (options.only) {
    const auto path = file_of_split(folder, *options.only);
    if (path) return read_one_split(*path, options);
  }
  const fs::path train = find_training(folder, options);
  const auto valid = find_split(folder, {"valid", "val", "dev"}),
             test = find_split(folder, {"test"});
  LabelledFile read = read_labelled(train);
  Corpus corpus;
  corpus.origin = folder.string();
  corpus.labels = options.labels.empty() ? labels_in(read.rows) : options.labels;
  const Numbering numbered(corpus.labels, options.lower_case);
  HeldOut held = hold_out(read.rows, train, options.seed, !valid, !test);
  corpus.numbers = std::move(held.numbers);
  corpus.files.fill(
      fmt::format("a tenth of {}, drawn by data.seed={}", train.string(), options.seed));
  corpus.files[0] = source_of(train, read.was_windows_1252);
  corpus.train = numbered(std::move(read.rows), train.string());
  corpus.valid = numbered(std::move(held.valid), train.string());
  corpus.test = [rows = numbered(std::move(held.test), train.string())] { return rows; };
  if (valid) {
    LabelledFile file = read_labelled(*valid);
    corpus.files[1] = source_of(*valid, file.was_windows_1252);
    corpus.numbers[1].clear();
    corpus.valid = numbered(std::move(file.rows), valid->string());
  }
  if (test) {
    corpus.files[2] = source_of(*test);
    corpus.test = [numbered, path = *test] {
      return numbered(read_labelled(path).rows, path.string());
    };
  }
  return corpus;
}

}  // namespace keel::models
