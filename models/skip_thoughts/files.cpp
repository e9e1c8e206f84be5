#include "models/skip_thoughts/files.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "frontend/io/near_miss.h"
#include "frontend/io/packed_file.h"
#include "frontend/io/tar.h"
#include "frontend/io/visible_files.h"
#include "frontend/text/line_reader.h"
#include "frontend/text/lines.h"
#include "frontend/text/moses_tokenizer.h"
#include "frontend/text/sentences.h"
#include "frontend/text/text_file.h"
#include "frontend/text/unicode.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxArchiveBytes = std::int64_t{1} << 33;  // BookCorpus has some 5 GB
constexpr double kTrainShare = 0.96, kValidShare = 0.02;

// Throws unless some sentence has one before and one after it.
std::vector<Passage> expect_neighbours(std::vector<Passage> passages, const std::string& where) {
  const bool holds = std::ranges::any_of(
      passages, [](const Passage& passage) { return passage.sentences.size() >= 3; });
  check(holds, ErrorKind::kBadInput,
        "[skip_thoughts] {}: expected three sentences in a row, got none", where);
  return passages;
}

// A sentence a line.
std::vector<Passage> read_lines(const fs::path& path, bool lower_case) {
  std::vector<Passage> passages(1);
  text::LineReader reader(path);
  while (const std::optional<text::Line> line = reader.next()) {
    const std::vector<std::string_view> words = text::words_of(line->text);
    if (!words.empty()) {
      const std::string sentence = fmt::format("{}", fmt::join(words, " "));
      passages.back().sentences.push_back(lower_case ? text::lower_case_unicode(sentence)
                                                     : sentence);
    } else if (!passages.back().sentences.empty()) {
      passages.emplace_back();
    }
  }
  return expect_neighbours(std::move(passages), path.string());
}

fs::path find_part(const fs::path& folder, const std::string& name) {
  return io::require_packed("skip_thoughts", folder, name,
                            io::near_misses(folder, {"val", "dev", "test"}));
}

OrderedText read_parts(const fs::path& folder, bool lower_case) {
  OrderedText text;
  text.name = "text";
  text.origin = fmt::format("{}, a sentence a line", folder.string());
  text.train = read_lines(find_part(folder, "train.txt"), lower_case);
  text.valid = read_lines(find_part(folder, "valid.txt"), lower_case);
  text.test = [path = find_part(folder, "test.txt"), lower_case] {
    return read_lines(path, lower_case);
  };
  return text;
}

bool is_archive(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".tar") || name.ends_with(".tar.xz") || name.ends_with(".tar.gz");
}

// The one archive of a folder, or nothing. Throws for several: which one is meant nobody can say.
std::optional<fs::path> find_archive(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code missing;  // a folder that is not there has none
  for (const fs::path& entry : io::visible_entries(folder, missing)) {
    if (is_archive(entry)) found.push_back(entry);
  }
  check(found.size() <= 1, ErrorKind::kIo, "[skip_thoughts] {}: expected one archive, got {}",
        folder.string(), found.size());
  return found.empty() ? std::nullopt : std::optional(found.front());
}

// One book: sentences in tokens.
Passage read_book(std::string_view content, const std::string& where, bool lower_case) {
  static const text::MosesTokenizer tokens({.escape = false});
  text::expect_text(content, where);
  Passage book;
  for (const std::string& sentence : text::sentences_of(content)) {
    const std::string words = tokens(sentence);
    book.sentences.push_back(lower_case ? text::lower_case_unicode(words) : words);
  }
  return book;
}

// Shares the sentences of a book out by their place.
void share_out(Passage book, OrderedText& text, std::vector<Passage>& test) {
  const auto begin = std::make_move_iterator(book.sentences.begin());
  const auto count = double(book.sentences.size());
  const auto train_end = begin + std::ptrdiff_t(count * kTrainShare);
  const auto valid_end = begin + std::ptrdiff_t(count * (kTrainShare + kValidShare));
  text.train.push_back({{begin, train_end}});
  text.valid.push_back({{train_end, valid_end}});
  test.push_back({{valid_end, std::make_move_iterator(book.sentences.end())}});
}

struct Books {
  std::vector<Passage> texts;
  std::string note;  // what the archive holds besides them
};

Books read_books(const fs::path& path, bool lower_case) {
  const std::string archive = io::read_file(path, kMaxArchiveBytes);
  Books books;
  io::TarFiles tar = io::read_tar(archive, path.string());
  for (const io::TarEntry& entry : tar.files) {
    if (io::lower_ending(entry.name) != ".txt") {
      tar.skipped.add_ending(entry.name);
      continue;
    }
    books.texts.push_back(
        read_book(entry.content, fmt::format("{}: {}", path.string(), entry.name), lower_case));
  }
  books.note = tar.skipped.note();
  check(!books.texts.empty(), ErrorKind::kBadInput,
        "[skip_thoughts] {}: expected books, files *.txt, got none{}", path.string(), books.note);
  return books;
}

OrderedText read_archive(const fs::path& path, bool lower_case) {
  OrderedText text;
  auto test = std::make_shared<std::vector<Passage>>();
  Books books = read_books(path, lower_case);
  for (Passage& book : books.texts) share_out(std::move(book), text, *test);
  text.name = "books";
  text.origin = fmt::format("{} ({} books, each cut by place{})", path.string(), books.texts.size(),
                            books.note);
  text.train = expect_neighbours(std::move(text.train), path.string());
  text.valid = expect_neighbours(std::move(text.valid), path.string() + ", validation");
  *test = expect_neighbours(std::move(*test), path.string() + ", test");
  text.test = [test] { return *test; };
  return text;
}

constexpr std::array<const char*, 3> kTextParts = {"train.txt", "valid.txt", "test.txt"};

// The one split that is evaluated, if it is a file or has one.
std::optional<OrderedText> read_one_split(const fs::path& source, bool lower_case,
                                          task::Split split) {
  const std::optional<fs::path> path =
      fs::is_regular_file(source) ? source
                                  : io::find_packed(source / kTextParts[std::size_t(split)]);
  if (!path) return std::nullopt;
  const bool is_books = is_archive(*path);
  OrderedText text;
  text.name = is_books ? "books" : "text";
  text.origin = path->string();
  if (is_books) {
    Books books = read_books(*path, lower_case);
    text.origin += books.note;
    text.put(split, expect_neighbours(std::move(books.texts), path->string()));
  } else {
    text.put(split, read_lines(*path, lower_case));
  }
  return text;
}

}  // namespace

OrderedText read_ordered_text(const fs::path& folder, bool lower_case,
                              std::optional<task::Split> only) {
  if (only) {
    if (auto text = read_one_split(folder, lower_case, *only)) return std::move(*text);
  }
  if (io::find_packed(folder / "train.txt")) return read_parts(folder, lower_case);
  for (const fs::path& place : {folder, folder / "lm"}) {
    if (const std::optional<fs::path> archive = find_archive(place)) {
      return read_archive(*archive, lower_case);
    }
  }
  fail(ErrorKind::kIo,
       "[skip_thoughts] {}: expected train.txt, valid.txt and test.txt, plain, .gz or .xz, or an "
       "archive of books, *.tar, .tar.gz or .tar.xz, there or in its folder lm, got neither{}",
       folder.string(), io::near_misses(folder, {".txt", ".zip", ".tgz"}));
}

}  // namespace keel::models
