// Readers of the tasks' data, and of what their users write.
#include "frontend/data/cifar10.h"
#include "frontend/text/text_file.h"
#include "models/attentive_reader/question.h"
#include "models/char_lm/alphabet.h"
#include "models/dependency_parser/conll.h"
#include "models/dependency_parser/data.h"
#include "models/dependency_parser/penn.h"
#include "models/dependency_parser/symbols.h"
#include "models/handwriting/files.h"
#include "models/skip_thoughts/binary_vectors.h"
#include "models/skip_thoughts/word_vectors.h"
#include "models/text_classifier/files.h"
#include "models/text_classifier/labelled_text.h"
#include "models/translation/subwords.h"
#include "tests/fuzz/target.h"

namespace keel::fuzz {
namespace {

// The first byte says whether it is CoNLL-U, and whether it has heads.
void read_conll(std::string_view bytes) {
  if (bytes.empty()) return;
  const models::ConllOptions options{.has_heads = (bytes[0] & 1) != 0,
                                     .is_conllu = (bytes[0] & 2) != 0};
  const std::string text(bytes.substr(1));
  text::expect_text(text, "input");
  const models::Treebank treebank = models::read_conll(text, "input", options);
  for (const models::Sentence& sentence : treebank.sentences) {
    expect(sentence.size() > 0, "an empty sentence");
    if (options.has_heads) models::with_arcs(sentence, sentence.heads, sentence.labels);
  }
}

// Brackets of the Penn Treebank: the rows made of them are rows of CoNLL, each a tree.
void read_penn(std::string_view bytes) {
  text::expect_text(bytes, "input");
  const std::string rows = models::rows_of_penn_trees(bytes, "input");
  try {
    models::read_conll(rows, "rows", {.is_conllu = true});
  } catch (const Error& error) {
    expect(false, error.what());
  }
}

void read_parser_lines(std::string_view bytes) {
  text::expect_text(bytes, "input");
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    lines.emplace_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  models::treebank_of_lines(lines);
}

void read_labels(std::string_view bytes) {
  const models::Labels labels = models::Labels::parse(bytes);
  expect(models::Labels::parse(labels.text()).text() == labels.text(),
         "labels change when they are written");
}

// Merges, a zero byte, and a dictionary, as checkpoints of translation have them.
void read_subwords(std::string_view bytes) {
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  const auto subwords =
      models::Subwords::parse(bytes.substr(0, end), bytes.substr(std::min(end + 1, bytes.size())));
  subwords.decode(subwords.encode("a b", "line"));
}

// A folder of SST5 or RT whose files are all the same.
class Folder {
 public:
  Folder(std::string_view bytes, std::initializer_list<const char*> names) : file_(bytes) {
    char pattern[] = "/dev/shm/keel-fuzz-XXXXXX";
    expect(mkdtemp(pattern) != nullptr, "no folder");
    path_ = pattern;
    for (const char* name : names) std::filesystem::create_symlink(file_.path(), path_ / name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  MemoryFile file_;
  std::filesystem::path path_;
};

void read_rt(std::string_view bytes) {
  const Folder folder(bytes, {"rt-polarity.pos", "rt-polarity.neg"});
  models::read_rt(folder.path(), 1, true);
}

void read_sst5(std::string_view bytes) {
  const Folder folder(bytes, {"stsa.fine.train", "stsa.fine.dev", "stsa.fine.test"});
  models::read_sst5(folder.path(), true);
}

// The first byte says which form it is.
void read_labelled(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto& endings = models::kLabelledEndings;
  const std::string name = "x" + std::string(endings[std::size_t(bytes[0]) % endings.size()]);
  const Folder folder(bytes.substr(1), {name.c_str()});
  for (const models::LabelledText& row : models::read_labelled(folder.path() / name).rows) {
    expect(!row.label.empty() && row.label.find('\n') == row.label.npos, "a label of no line");
    expect(!row.text.empty() && row.line > 0, "a row without a text");
  }
}

void read_questions(std::string_view bytes) {
  text::expect_text(bytes, "input");
  for (const models::Question& question : models::read_questions(bytes, "input")) {
    const auto again = models::read_questions(models::text_of_question(question, "u"), "again");
    expect(again.size() == 1 && again[0].passage == question.passage &&
               again[0].question == question.question && again[0].answer == question.answer,
           "a question changes when it is written");
  }
}

void read_iam_row(std::string_view bytes) {
  const auto alphabet = models::Alphabet::of_letters();
  const models::IamLine row = models::parse_iam_row(bytes, alphabet, "input");
  expect(row.form.size() >= 7, "an id of another length");
}

void read_iam_strokes(std::string_view bytes) {
  expect(models::parse_iam_strokes(bytes, "input").size() >= 2, "a line without points");
}

void read_byte_alphabet(std::string_view bytes) {
  const models::ByteAlphabet alphabet = models::ByteAlphabet::parse(bytes);
  expect(alphabet.text() == bytes, "an alphabet changes when it is written");
}

void read_cifar10(std::string_view bytes) {
  const Folder folder(bytes, {"data_batch_1.bin"});
  const data::Pictures pictures = data::load_cifar10(folder.path(), data::Part::kTrain);
  for (const std::int32_t label : pictures.label.as<std::int32_t>()) {
    expect(label >= 0 && label < 10, "a label of CIFAR-10 out of range");
  }
}

void expect_vectors(const models::WordVectors& vectors) {
  for (const auto& [word, vector] : vectors.of) {
    expect(!word.empty() && std::ssize(vector) == vectors.width, "a vector of another width");
  }
}

void read_word_vectors(std::string_view bytes) {
  const MemoryFile file(bytes);
  expect_vectors(models::read_word_vectors(file.path(), [](std::string_view) { return true; }));
}

void read_binary_vectors(std::string_view bytes) {
  const MemoryFile file(bytes);
  expect_vectors(models::read_binary_vectors(file.path(), [](std::string_view) { return true; }));
}

}  // namespace

std::span<const Target> task_targets() {
  static constexpr Target kTargets[] = {{"conll", read_conll},
                                        {"penn", read_penn},
                                        {"parser_lines", read_parser_lines},
                                        {"labels", read_labels},
                                        {"subwords", read_subwords},
                                        {"rt", read_rt},
                                        {"sst5", read_sst5},
                                        {"labelled", read_labelled},
                                        {"questions", read_questions},
                                        {"iam_row", read_iam_row},
                                        {"iam_strokes", read_iam_strokes},
                                        {"byte_alphabet", read_byte_alphabet},
                                        {"word_vectors", read_word_vectors},
                                        {"binary_vectors", read_binary_vectors},
                                        {"cifar10", read_cifar10}};
  return kTargets;
}

}  // namespace keel::fuzz
