#include "models/attentive_reader/files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "frontend/data/permutation.h"
#include "frontend/io/near_miss.h"
#include "frontend/io/packed_file.h"
#include "frontend/io/tar.h"
#include "frontend/io/visible_files.h"
#include "frontend/text/text_file.h"
#include "models/attentive_reader/cloze.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxQuestionBytes = std::int64_t{1} << 32;
constexpr std::array<std::string_view, 3> kQuestionPlaces = {"", "qa", "cnn"};
constexpr std::array<std::string_view, 3> kQuestionParts = {"training", "validation", "test"};
constexpr std::uint32_t kLambadaSplit = stream_of("attentive_reader.lambada");

using Questions = std::vector<Question>;

void append(Questions& questions, Questions more) {
  std::ranges::move(more, std::back_inserter(questions));
}

// A part of `all` as a corpus keeps it.
Questions cut_out(Questions& all, std::int64_t first, std::int64_t end) {
  return {std::make_move_iterator(all.begin() + first), std::make_move_iterator(all.begin() + end)};
}

void expect_training(const QuestionCorpus& corpus) {
  check(!corpus.train.empty() && !corpus.valid.empty(), ErrorKind::kBadInput,
        "[attentive_reader] {}: expected questions for training and validation, got {} and {}",
        corpus.origin, corpus.train.size(), corpus.valid.size());
}

// Records ---------------------------------------------------------------------------------------

// Where a part lies: a folder of files, or one file.
std::optional<fs::path> find_question_part(const fs::path& place, std::string_view part) {
  for (const fs::path& folder : {place / part, place / "questions" / part}) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) return folder;
  }
  return io::find_packed(place / fmt::format("{}.question", part));
}

Questions read_question_part(const fs::path& path) {
  if (!fs::is_directory(path)) {
    return read_questions(text::read_text(path, kMaxQuestionBytes), path.string());
  }
  std::set<fs::path> files;
  std::error_code error;
  for (const fs::path& entry : io::visible_entries(path, error)) {
    fs::path name = entry;
    if (name.extension() == ".gz" || name.extension() == ".xz") name = name.stem();
    if (name.extension() == ".question") files.insert(entry);
  }
  check(!error, ErrorKind::kIo, "[attentive_reader] {}: {}", path.string(), error.message());
  check(!files.empty(), ErrorKind::kIo, "[attentive_reader] {}: expected *.question, got none",
        path.string());
  Questions questions;
  for (const fs::path& file : files) {
    append(questions, read_questions(text::read_text(file, kMaxQuestionBytes), file.string()));
  }
  return questions;
}

// A corpus that has only the part of the questions that is evaluated.
QuestionCorpus one_part(std::string name, const fs::path& at, task::Split split, Questions part) {
  check(!part.empty(), ErrorKind::kBadInput, "[attentive_reader] {}: expected questions, got none",
        at.string());
  QuestionCorpus corpus;
  corpus.name = std::move(name);
  corpus.origin = at.string();
  corpus.put(split, std::move(part));
  return corpus;
}

QuestionCorpus read_records_of(const fs::path& folder, task::Split split) {
  const std::string_view part = kQuestionParts[std::size_t(split)];
  for (const std::string_view place : kQuestionPlaces) {
    const std::optional<fs::path> found = find_question_part(folder / place, part);
    if (found) return one_part("questions", *found, split, read_question_part(*found));
  }
  fail(ErrorKind::kIo,
       "[attentive_reader] {}: expected a folder {} with *.question, there or in its folder "
       "questions, or {}.question, plain, .gz or .xz, got neither, nor in its folders qa and cnn{}",
       folder.string(), part, part,
       io::near_misses(folder, {".question", "questions", "test", ".jsonl"}));
}

QuestionCorpus read_records(const fs::path& folder) {
  for (const std::string_view place : kQuestionPlaces) {
    const fs::path at = folder / place;
    if (!find_question_part(at, kQuestionParts[0])) continue;
    std::array<fs::path, 3> parts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::optional<fs::path> part = find_question_part(at, kQuestionParts[i]);
      check(part.has_value(), ErrorKind::kIo,
            "[attentive_reader] {}: expected a folder {}, or {}.question, got neither", at.string(),
            kQuestionParts[i], kQuestionParts[i]);
      parts[i] = *part;
    }
    QuestionCorpus corpus;
    corpus.name = "questions";
    corpus.origin = at.string();
    corpus.train = read_question_part(parts[0]);
    corpus.valid = read_question_part(parts[1]);
    corpus.test = [test = parts[2]] { return read_question_part(test); };
    return corpus;
  }
  fail(ErrorKind::kIo,
       "[attentive_reader] {}: expected a folder training with *.question, there or in its folder "
       "questions, or training.question, plain, .gz or .xz, got neither, nor in its folders qa "
       "and cnn (model.corpus takes other forms){}",
       folder.string(), io::near_misses(folder, {".question", "questions", "train", ".jsonl"}));
}

// bAbI ------------------------------------------------------------------------------------------

// Files of one part by the number of their task: "qa7_counting_train.txt" is that of 7.
class BabiFiles {
 public:
  explicit BabiFiles(const fs::path& folder) {
    for (const std::string_view place : kQuestionPlaces) {
      if (files_.empty()) look_in(folder / place);
    }
    check(!files_.empty(), ErrorKind::kIo,
          "[attentive_reader] {}: expected qaN_*_train.txt and qaN_*_test.txt in babi-en.tar, "
          "plain, .gz or .xz, or in a folder babi-en, there or in its folder qa, got none{}",
          folder.string(), io::near_misses(folder, {"babi", "_train.txt"}));
  }

  std::string origin() const { return origin_ + skipped_.note(); }

  // Questions of all tasks or of one; `take` puts those of a task somewhere.
  template <class Take>
  void read(std::string_view part, std::int64_t task, const Take& take) const {
    std::int64_t found = 0;
    for (const auto& [key, file] : files_) {
      if (key.second != part || (task != 0 && key.first != task)) continue;
      ++found;
      text::expect_text(file.second, file.first);
      take(read_babi(file.second, file.first));
    }
    check(found > 0, ErrorKind::kIo, "[attentive_reader] {}: expected qa{}_*_{}.txt, got none",
          origin_, task == 0 ? "N" : fmt::format("{}", task), part);
  }

 private:
  void look_in(const fs::path& place) {
    if (const auto packed = io::find_packed(place / "babi-en.tar")) {
      origin_ = packed->string();
      const std::string archive = io::read_file(*packed, kMaxQuestionBytes);
      const io::TarFiles tar = io::read_tar(archive, "[attentive_reader] " + origin_);
      skipped_ = tar.skipped;
      for (const io::TarEntry& entry : tar.files) {
        add(fs::path(entry.name).filename(), std::string(entry.content));
      }
      return;
    }
    std::error_code error;
    const std::vector<fs::path> files = io::visible_entries(place / "babi-en", error, &skipped_);
    if (error) return;
    origin_ = (place / "babi-en").string();
    for (const fs::path& file : files) {
      add(file.filename(), io::read_file(file, kMaxQuestionBytes));
    }
  }
  void add(const std::string& name, std::string content) {
    if (!name.starts_with("qa")) return;
    std::int64_t task = 0;
    const char* last = name.data() + name.size();
    const auto [end, error] = std::from_chars(name.data() + 2, last, task);
    if (error != std::errc() || end == last || *end != '_') return;
    for (const std::string part : {"train", "test"}) {
      if (!name.ends_with("_" + part + ".txt")) continue;
      files_[{task, part}] = {fmt::format("{}: {}", origin_, name), std::move(content)};
      return;
    }
  }

  std::string origin_;
  io::SkippedFiles skipped_;
  // By task and part: the name for messages, and the content.
  std::map<std::pair<std::int64_t, std::string>, std::pair<std::string, std::string>> files_;
};

QuestionCorpus read_babi_corpus(const fs::path& folder, std::int64_t task,
                                std::optional<task::Split> only) {
  const auto files = std::make_shared<const BabiFiles>(folder);
  QuestionCorpus corpus;
  corpus.name = task == 0 ? "questions" : fmt::format("task {} questions", task);
  corpus.origin = files->origin();
  const auto cut_training = [&](Questions all) {
    const std::int64_t n = std::ssize(all), valid = n / 10;
    append(corpus.valid, cut_out(all, n - valid, n));
    append(corpus.train, cut_out(all, 0, n - valid));
  };
  if (only != task::Split::kTest) files->read("train", task, cut_training);
  corpus.test = [files, task] {
    Questions questions;
    files->read("test", task, [&](Questions more) { append(questions, std::move(more)); });
    return questions;
  };
  return corpus;
}

// LAMBADA ---------------------------------------------------------------------------------------

QuestionCorpus read_lambada_corpus(const fs::path& folder, std::uint64_t seed) {
  for (const std::string_view place : kQuestionPlaces) {
    const auto path = io::find_packed(folder / place / "lambada_test.jsonl");
    if (!path) continue;
    const Converted read = read_lambada(text::read_text(*path, kMaxQuestionBytes), path->string());
    const std::int64_t n = std::ssize(read.questions), tenth = n / 10;
    std::array<Questions, 3> parts;  // validation, test, training
    const std::vector<std::int64_t> order = data::permutation(n, Philox(seed, kLambadaSplit));
    for (std::int64_t i = 0; i < n; ++i) {
      Questions& part = parts[std::size_t(i < tenth ? 0 : i < 2 * tenth ? 1 : 2)];
      part.push_back(read.questions[std::size_t(order[std::size_t(i)])]);
    }
    QuestionCorpus corpus;
    corpus.name = "passages";
    corpus.origin = fmt::format("{} (split {})", path->string(), seed);
    corpus.valid = std::move(parts[0]);
    corpus.train = std::move(parts[2]);
    corpus.test = [test = std::move(parts[1])] { return test; };
    if (read.without > 0) corpus.skipped.push_back({read.without, "only one sentence"});
    return corpus;
  }
  fail(ErrorKind::kIo,
       "[attentive_reader] {}: expected lambada_test.jsonl, plain, .gz or .xz, there or in its "
       "folder qa, got none of them{}",
       folder.string(), io::near_misses(folder, {"lambada", ".jsonl"}));
}

// A file of questions, whole.
QuestionCorpus read_question_file(const fs::path& file, QuestionForm form, task::Split split) {
  const std::string content = text::read_text(file, kMaxQuestionBytes);
  if (form == QuestionForm::kLambada) {
    Converted read = read_lambada(content, file.string());
    QuestionCorpus corpus = one_part("passages", file, split, std::move(read.questions));
    if (read.without > 0) corpus.skipped.push_back({read.without, "only one sentence"});
    return corpus;
  }
  return one_part("questions", file, split,
                  form == QuestionForm::kBabi ? read_babi(content, file.string())
                                              : read_questions(content, file.string()));
}

}  // namespace

QuestionCorpus read_question_corpus(const fs::path& folder, const QuestionFileOptions& options) {
  const auto only = options.only;
  if (only && fs::is_regular_file(folder)) return read_question_file(folder, options.form, *only);
  if (only && options.form == QuestionForm::kQuestions) return read_records_of(folder, *only);
  QuestionCorpus corpus =
      options.form == QuestionForm::kBabi      ? read_babi_corpus(folder, options.babi_task, only)
      : options.form == QuestionForm::kLambada ? read_lambada_corpus(folder, options.seed)
                                               : read_records(folder);
  if (!only) expect_training(corpus);
  return corpus;
}

}  // namespace keel::models
