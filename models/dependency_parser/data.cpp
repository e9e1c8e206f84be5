#include "models/dependency_parser/data.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "frontend/io/near_miss.h"
#include "frontend/io/packed_file.h"
#include "frontend/io/visible_files.h"
#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "models/dependency_parser/builtin.h"
#include "models/dependency_parser/penn.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxTreebankBytes = 1 << 28;  // nine times the Penn Treebank in ten columns
constexpr std::array<std::string_view, 5> kEndings = {".conllu", ".conllx", ".conll", ".dp",
                                                      ".mrg"};

std::string_view part_name(task::Split split) {
  return split == task::Split::kTrain ? "train" : split == task::Split::kValid ? "dev" : "test";
}

// A file's name without .gz or .xz.
std::string unpacked_name(const fs::path& path) {
  const fs::path name = path.filename();
  return name.extension() == ".gz" || name.extension() == ".xz" ? name.stem() : name;
}

bool is_part(const std::string& unpacked_name, std::string_view part) {
  const fs::path name(unpacked_name);
  if (std::ranges::find(kEndings, name.extension().string()) == kEndings.end()) return false;
  const std::string stem = name.stem();
  if (!stem.ends_with(part)) return false;
  const std::size_t before = stem.size() - part.size();
  return before == 0 || std::string_view("-_.").find(stem[before - 1]) != std::string_view::npos;
}

// The names, unpacked, of a part's files in a folder.
std::set<std::string> parts_in(const fs::path& folder, std::string_view part) {
  std::set<std::string> names;
  std::error_code error;
  for (const fs::path& entry : io::visible_entries(folder, error)) {
    const std::string name = unpacked_name(entry);
    if (is_part(name, part)) names.insert(name);
  }
  return names;
}

fs::path find_part(const fs::path& folder, std::string_view part) {
  for (const fs::path& place : {folder, folder / "treebank"}) {
    const std::set<std::string> names = parts_in(place, part);
    if (names.empty()) continue;
    check(names.size() == 1, ErrorKind::kBadInput,
          "[dependency_parser] {}: expected one treebank, got {} and {}", place.string(),
          *names.begin(), *names.rbegin());
    return *io::find_packed(place / *names.begin());
  }
  fail(
      ErrorKind::kIo,
      "[dependency_parser] {}: expected a file *{}.conllu, .conllx, .conll, .dp or .mrg, plain, "
      ".gz or .xz, there or in its folder treebank, or the sections 00 to 24 of the Penn Treebank, "
      "got none{}",
      folder.string(), part,
      io::near_misses(folder, {".conllu", ".conllx", ".conll", ".dp", ".mrg"},
                      fmt::format("none ends in {}", part)));
}

Treebank read_treebank(const fs::path& path) {
  const fs::path ending = fs::path(unpacked_name(path)).extension();
  std::string text = text::read_text(path, kMaxTreebankBytes);
  if (ending == ".mrg") text = rows_of_penn_trees(text, path.string());
  return read_conll(std::move(text), path.string(), {.is_conllu = ending == ".conllu"});
}

// The split of a file that has none of its own.
Treebank share_of(Treebank all, task::Split split) {
  const std::int64_t n = std::ssize(all.sentences), tenth = n / 10, valid = n - 2 * tenth,
                     test = n - tenth;
  check(tenth >= 1, ErrorKind::kBadInput,
        "[dependency_parser] {}: expected at least 10 sentences, got {}", all.name, n);
  const bool trains = split == task::Split::kTrain, validates = split == task::Split::kValid;
  const std::int64_t first = trains      ? 0
                             : validates ? valid
                                         : test,
                     end = trains      ? valid
                           : validates ? test
                                       : n;
  all.name += fmt::format(", sentences {} to {}", first + 1, end);
  all.sentences.resize(static_cast<std::size_t>(end));
  all.sentences.erase(all.sentences.begin(), all.sentences.begin() + first);
  return all;
}

// word_TAG as a row of a treebank.
std::string row_of(std::string_view word, std::int64_t id, const std::string& where) {
  const std::size_t between = word.rfind('_');
  const bool has_both = between != word.npos && between > 0 && between + 1 < word.size();
  check(has_both, ErrorKind::kBadInput, "[dependency_parser] {}: expected word_TAG, got '{}'",
        where, text::clipped(word, 60));
  const std::string_view tag = word.substr(between + 1);
  return fmt::format("{}\t{}\t_\t{}\t{}\t_\t_\t_\t_\t_\n", id, word.substr(0, between), tag, tag);
}

std::string rows_of(std::span<const std::string> lines, const std::string& name) {
  std::string rows;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string where = text::place(name, static_cast<std::int64_t>(i + 1));
    std::int64_t id = 0;
    for (const std::string_view word : text::words_of(lines[i])) rows += row_of(word, ++id, where);
    if (id > 0) rows += '\n';
  }
  return rows;
}

}  // namespace

Treebank load_treebank(const task::DataRequest& request, task::Split split) {
  Treebank treebank;
  if (request.source == "builtin") {
    treebank = make_cfg_dep(request.seed, split);
  } else if (request.is_whole_file()) {
    treebank = read_treebank(request.source);
  } else if (std::error_code ignored; fs::is_regular_file(request.source, ignored)) {
    treebank = share_of(read_treebank(request.source), split);
  } else if (const auto sections = find_penn_sections(request.source)) {
    treebank = read_penn_sections(*sections, split);
  } else {
    treebank = read_treebank(find_part(request.source, part_name(split)));
  }
  return treebank;
}

Treebank treebank_of_lines(std::span<const std::string> lines) {
  const std::string name = "standard input";
  const auto has_tab = [](const std::string& line) { return line.find('\t') != line.npos; };
  std::string text = fmt::format("{}\n", fmt::join(lines, "\n"));
  text::expect_text(text, name);
  if (std::ranges::none_of(lines, has_tab)) text = rows_of(lines, name);
  if (text.empty()) return {name, std::make_shared<const std::string>(), {}};
  return read_conll(std::move(text), name, {.has_heads = false});
}

}  // namespace keel::models
