#include "models/text_classifier/files.h"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/data/permutation.h"
#include "frontend/io/near_miss.h"
#include "frontend/io/packed_file.h"
#include "frontend/task/classification.h"
#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxBytes = 16 << 20;  // seven times the largest of the files
constexpr std::int32_t kRtClasses = 2, kSstClasses = 5;
// Sentences of RT in the splits of Xu et al. (2019).
constexpr std::int64_t kRtTrain = 8608, kRtValid = 964, kRtTest = 1089;
constexpr std::int64_t kRtAll = kRtTrain + kRtValid + kRtTest;
constexpr std::uint32_t kSplitStream = stream_of("text_classifier.rt");

// ".xz", ".gz" or "plain", for people.
std::string_view packing(const fs::path& path) {
  return path.extension() == ".xz" ? ".xz" : path.extension() == ".gz" ? ".gz" : "plain";
}

// For who has files of his own and does not know what takes them.
std::string own_files_hint(const fs::path& folder) {
  return io::near_misses(folder, {"train", ".csv", ".tsv", ".jsonl"},
                         "--set model.task=files takes sentences with labels of your own");
}

fs::path find_beside(const fs::path& folder, const std::string& name) {
  return io::require_packed("text_classifier", folder, name, own_files_hint(folder));
}

// RT -----------------------------------------------------------------------------------------

std::vector<std::string> strings(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

std::optional<fs::path> find_rt(const fs::path& folder) {
  for (const fs::path& place : {folder, folder / "sentences"}) {
    if (io::find_packed(place / "rt-polarity.pos")) return place;
  }
  return std::nullopt;
}

fs::path rt_folder(const fs::path& folder) {
  if (const auto place = find_rt(folder)) return *place;
  fail(ErrorKind::kIo,
       "[text_classifier] {}: expected rt-polarity.pos and rt-polarity.neg, plain, "
       ".gz or .xz, there or in its folder sentences, got neither{}",
       folder.string(), own_files_hint(folder));
}

void append_lines(Sentences& sentences, std::string_view text, std::int32_t label) {
  text::Lines lines(text);
  while (const std::optional<text::Line> line = lines.next()) {
    sentences.push_back({label, strings(text::words_of(line->text))});
  }
}

// Sentences order[first] to order[first + count - 1].
Sentences take(const Sentences& all, std::span<const std::int64_t> order, std::int64_t first,
               std::int64_t count) {
  Sentences taken;
  for (std::int64_t i = first; i < first + count; ++i) {
    taken.push_back(all[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])]);
  }
  return taken;
}

void split(Corpus& corpus, const Sentences& all, std::uint64_t seed) {
  const std::int64_t n = std::ssize(all);
  const std::int64_t train = n * kRtTrain / kRtAll, valid = n * kRtValid / kRtAll,
                     test = n * kRtTest / kRtAll, rest = n - train - valid - test;
  check(valid >= 1, ErrorKind::kBadInput,
        "[text_classifier] {}: expected at least 12 sentences, got {}", corpus.origin, n);
  const std::vector<std::int64_t> order = data::permutation(n, Philox(seed, kSplitStream));
  corpus.train = take(all, order, 0, train);
  corpus.valid = take(all, order, train, valid);
  corpus.test = [sentences = take(all, order, train + valid, test)] { return sentences; };
  if (rest > 0) {
    corpus.skipped.push_back(
        {rest, fmt::format("the split of RT has places for {} of {} sentences", n - rest, n)});
  }
}

// SST5 ---------------------------------------------------------------------------------------

enum class Form { kTrees, kLines };

struct Layout {
  std::string_view folder, prefix, suffix;
  Form form;
  std::string file(std::string_view part) const {
    return fmt::format("{}{}{}", prefix, part, suffix);
  }
};

constexpr std::array<Layout, 6> kLayouts = {{{"", "", ".txt", Form::kTrees},
                                             {"sst-trees", "", ".txt", Form::kTrees},
                                             {"trees", "", ".txt", Form::kTrees},
                                             {"sentences/sst-trees", "", ".txt", Form::kTrees},
                                             {"", "stsa.fine.", "", Form::kLines},
                                             {"sentences", "stsa.fine.", "", Form::kLines}}};

constexpr std::array<std::string_view, 3> kSstParts = {"train", "dev", "test"};

std::string_view sst_part(task::Split split) { return kSstParts[static_cast<std::size_t>(split)]; }

// Null where no layout has that part.
const Layout* layout_in(const fs::path& folder, std::string_view part) {
  for (const Layout& layout : kLayouts) {
    if (io::find_packed(folder / layout.folder / layout.file(part))) return &layout;
  }
  return nullptr;
}

const Layout& find_layout(const fs::path& folder, std::string_view part) {
  if (const Layout* layout = layout_in(folder, part)) return *layout;
  fail(ErrorKind::kIo,
       "[text_classifier] {}: expected the trees of SST in {}.txt (there or in "
       "sst-trees, trees or sentences/sst-trees), or stsa.fine.{} (there or in sentences), "
       "plain, .gz or .xz, got none of them{}",
       folder.string(), part, part, own_files_hint(folder));
}

// The form of a file, by its beginning.
Form form_of(const fs::path& file) {
  std::byte first;
  io::PackedFile(file, kMaxBytes).read({&first, 1});
  return char(first) == '(' ? Form::kTrees : Form::kLines;
}

bool ends_as_own(const fs::path& file) {
  const bool is_packed = file.extension() == ".gz" || file.extension() == ".xz";
  const fs::path ending = is_packed ? file.stem().extension() : file.extension();
  return ending == ".tsv" || ending == ".csv" || ending == ".jsonl";
}

// "LABEL word word ..."
text::LabelledSentence read_flat(std::string_view line, const std::string& where) {
  std::vector<std::string_view> words = text::words_of(line);
  std::int32_t label = -1;
  const std::string_view first = words.empty() ? std::string_view() : words.front();
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), label);
  check(error == std::errc() && end == first.data() + first.size() && label >= 0 &&
            label < kSstClasses,
        ErrorKind::kBadInput, "[text_classifier] {}: expected a label of 0 to {}, got '{}'", where,
        kSstClasses - 1, text::clipped(first, 40));
  words.erase(words.begin());
  for (std::string_view& word : words) word = text::word_of_leaf(word);
  return {label, strings(words)};
}

Sentences read_part(const fs::path& path, Form form, bool lower_case) {
  std::string content = text::read_text(path, kMaxBytes);
  if (lower_case) content = text::lower_case(content);
  Sentences sentences;
  text::Lines lines(content);
  while (const std::optional<text::Line> line = lines.next()) {
    const std::string where = text::place(path.string(), line->number);
    check(form == Form::kLines || line->number > 1 || line->text.starts_with('('),
          ErrorKind::kBadInput,
          "[text_classifier] {}: expected a tree of SST, such as (3 (2 a) (4 b)), got '{}'; --set "
          "model.task=files takes sentences with labels of your own",
          where, text::clipped(line->text, 40));
    sentences.push_back(form == Form::kTrees ? text::read_tree(line->text, kSstClasses, where)
                                             : read_flat(line->text, where));
  }
  return sentences;
}

}  // namespace

Corpus read_rt(const fs::path& folder, std::uint64_t seed, bool lower_case) {
  const fs::path place = rt_folder(folder);
  Sentences all;
  bool was_windows_1252 = false;
  fs::path path;
  for (std::int32_t label = 0; label < kRtClasses; ++label) {
    path = find_beside(place, label == 1 ? "rt-polarity.pos" : "rt-polarity.neg");
    text::WesternText read = text::read_western_text(path, kMaxBytes);
    was_windows_1252 |= read.was_windows_1252;
    append_lines(all, lower_case ? text::lower_case(read.utf8) : read.utf8, label);
  }
  Corpus corpus;
  corpus.name = "RT";
  corpus.labels = task::numbered_classes(kRtClasses);
  corpus.origin = fmt::format("{} (two files, {}, {}; split {})", place.string(),
                              was_windows_1252 ? "Windows-1252" : "UTF-8", packing(path), seed);
  split(corpus, all, seed);
  return corpus;
}

bool is_sst5(const fs::path& source, task::Split split) {
  if (fs::is_regular_file(source)) return !ends_as_own(source);
  const Layout* layout = layout_in(source, sst_part(split));
  if (layout == nullptr || layout->form == Form::kLines) return layout != nullptr;
  const fs::path file = source / layout->folder / layout->file(sst_part(split));
  try {
    return form_of(*io::find_packed(file)) == Form::kTrees;
  } catch (const Error&) {
    return false;  // the reader says what is wrong with it
  }
}

bool has_rt(const fs::path& folder) { return find_rt(folder).has_value(); }

Corpus read_sst5(const fs::path& folder, bool lower_case, std::optional<task::Split> only) {
  Corpus corpus;
  corpus.name = "SST5";
  corpus.labels = task::numbered_classes(kSstClasses);
  if (only && fs::is_regular_file(folder)) {
    corpus.origin = folder.string();
    corpus.put(*only, read_part(folder, form_of(folder), lower_case));
    return corpus;
  }
  const Layout& layout = find_layout(folder, sst_part(only.value_or(task::Split::kTrain)));
  const fs::path place = layout.folder.empty() ? folder : folder / layout.folder;
  if (only) {
    const fs::path path = find_beside(place, layout.file(sst_part(*only)));
    corpus.origin = path.string();
    corpus.put(*only, read_part(path, form_of(path), lower_case));
    return corpus;
  }
  const fs::path train = find_beside(place, layout.file("train")),
                 valid = find_beside(place, layout.file("dev")),
                 test = find_beside(place, layout.file("test"));
  corpus.origin =
      fmt::format("{} ({}, {})", place.string(),
                  layout.form == Form::kTrees ? "trees" : "labelled lines", packing(train));
  corpus.train = read_part(train, layout.form, lower_case);
  corpus.valid = read_part(valid, layout.form, lower_case);
  corpus.test = [=, form = layout.form] { return read_part(test, form, lower_case); };
  return corpus;
}

}  // namespace keel::models
