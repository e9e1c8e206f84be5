// Every key of every task changes the network, the data, an answer or what is measured. A key that
// nothing reads, or that is not passed on, changes none of them.
#include <algorithm>
#include <sstream>

#include "tests/models/key_files.h"
#include "tests/models/key_texts.h"

namespace keel::models {
namespace {

using test::operator+;

// A key that needs more than another value: a value that nobody guesses, other settings beside it
// or files. {} is the task's folder of key_files(). Keys that act at several places have a row for
// each: the data that are read, and what a checkpoint says afterwards.
struct KeyRow {
  std::string task, key, value;
  Shown shown;
  Settings settings = {};
};

const std::string kFiles = "data.source={}";

const std::vector<KeyRow> kKeysOfFiles{
    {"text_classifier", "model.task", "sst5", Shown::kTrain, {"data.source=builtin"}},
    {"text_classifier", "model.lower_case", "false", Shown::kTrain, {kFiles, "model.task=files"}},
    {"translation", "model.corpus", "files", Shown::kTest, {kFiles}},
    {"translation", "model.corpus", "tatoeba", Shown::kTrain, {kFiles}},
    {"translation", "model.languages", "en-de", Shown::kTrain, {kFiles}},
    {"translation", "model.lower_case", "false", Shown::kTrain, {kFiles}},
    {"translation", "model.tokenized", "true", Shown::kTrain, {kFiles, "model.corpus=files"}},
    {"translation", "model.joint", "false", Shown::kTrain, {kFiles, "model.embeddings=target"}},
    {"translation",
     "model.target_symbols",
     "5",
     Shown::kTrain,
     {kFiles, "model.embeddings=target", "model.joint=false"}},
    {"translation", "model.most_words", "4", Shown::kTrain, {kFiles}},
    {"translation", "model.most_subwords", "4", Shown::kTrain, {kFiles}},
    {"translation",
     "model.fit_merges",
     "true",
     Shown::kAssets,
     {kFiles, "model.source_symbols=99"}},
    {"translation", "model.translated_rows", "2", Shown::kValid, {kFiles}},
    {"order_embeddings", "model.features", "synthetic", Shown::kTrain, {kFiles}},
    {"order_embeddings", "model.lower_case", "false", Shown::kTrain, {kFiles}},
    {"attentive_reader", "model.corpus", "babi", Shown::kTrain, {kFiles}},
    {"attentive_reader", "model.babi_task", "2", Shown::kTrain, {kFiles, "model.corpus=babi"}},
    {"attentive_reader", "model.longest", "7", Shown::kTrain, {kFiles}},
    {"skip_thoughts", "model.lower_case", "false", Shown::kTrain, {kFiles}},
    {"handwriting", "model.multiple", "2", Shown::kTrain, {kFiles, "model.points=111"}},
    {"char_lm", "model.file", "other", Shown::kTrain, {kFiles}},
    {"char_lm", "model.parts", "whole", Shown::kKeptTest, {kFiles}},
    {"word_lm", "model.corpus", "wikitext", Shown::kTrain, {kFiles}},
    {"word_lm", "model.min_count", "30", Shown::kTrain, {kFiles}},
};

const std::vector<KeyRow> kKeysBesideOthers{
    {"mnist_mlp", "model.batchnorm_options", "keep=0.5", Shown::kStep, {"model.norm=batchnorm"}},
    {"translation",
     "model.scaled_norms",
     "batchnorm",
     Shown::kStep,
     {"model.scaling=groupscaling"}},
    {"translation", "model.sites", "encoder", Shown::kStep, {"model.norm=rmsnorm"}},
    {"translation", "model.sites", "final", Shown::kStep, {"model.norm=rmsnorm"}},
    {"char_lm", "model.kv_heads", "1", Shown::kStep, {"model.architecture=llama"}},
    {"char_lm", "model.qk_norm", "true", Shown::kStep, {"model.architecture=llama"}},
    {"char_lm", "model.embedding_scalar", "true", Shown::kStep, {"model.architecture=llama"}},
    {"word_lm", "model.heads", "2", Shown::kStep, {"model.attention=softmax"}},
    {"word_lm", "model.cutoffs", "5,10", Shown::kStep},
    {"cifar_resnet20", "model.depth", "14", Shown::kStep},
};

const std::vector<KeyRow> kKeysOfAnswers{
    {"text_classifier", "model.lower_case", "false", Shown::kAnswers, {kFiles, "model.task=files"}},
    {"translation", "model.tokenized", "true", Shown::kAnswers, {kFiles}},
    {"translation", "model.beam", "1", Shown::kAnswers, {kFiles}},
    {"translation", "model.length_penalty", "0.5", Shown::kAnswers, {kFiles}},
    {"translation", "model.longest", "2", Shown::kAnswers, {kFiles}},
    {"order_embeddings", "model.images", "{}/images.safetensors", Shown::kAnswers, {kFiles}},
    {"order_embeddings",
     "model.error",
     "symmetric",
     Shown::kAnswers,
     {kFiles, "model.images={}/images.safetensors"}},
    {"order_embeddings", "model.error", "symmetric", Shown::kScores, {kFiles}},
    {"order_embeddings", "model.fold", "2", Shown::kScores, {kFiles}},
    {"attentive_reader", "model.sentences", "1", Shown::kAnswers, {kFiles}},
    {"skip_thoughts", "model.lower_case", "false", Shown::kAnswers, {kFiles}},
    {"skip_thoughts",
     "model.vectors",
     "{}/vectors.txt",
     Shown::kAnswers,
     {kFiles, "model.symbols=20"}},
    {"handwriting", "model.bias", "2", Shown::kAnswers, {kFiles, "model.sample_points=20"}},
    {"handwriting", "model.sample_seed", "2", Shown::kAnswers, {kFiles, "model.sample_points=20"}},
    {"handwriting",
     "model.sample_points",
     "10",
     Shown::kAnswers,
     {kFiles, "model.sample_points=20"}},
    {"draw", "model.sample_seed", "2", Shown::kAnswers},
    {"draw", "model.sample_seed", "2", Shown::kScores},
};

// The tasks that draw their data or a split from a seed.
const std::vector<KeyRow> kSeedsOfData{
    {"text_classifier", "data.seed", "2", Shown::kTrain, {kFiles, "model.task=files"}},
    {"translation", "data.seed", "2", Shown::kTrain, {kFiles, "model.corpus=tatoeba"}},
    {"attentive_reader", "data.seed", "2", Shown::kTrain, {kFiles, "model.corpus=lambada"}},
    {"deep_linear", "data.seed", "2", Shown::kTrain},
};

// A row's text with the task's folder in the place of {}.
std::string with_folder(const KeyRow& row, std::string text) {
  if (const std::size_t at = text.find("{}"); at != text.npos) {
    text.replace(at, 2, (key_files() / row.task).string());
  }
  return text;
}

void check_rows(const std::vector<KeyRow>& rows) {
  for (const KeyRow& row : rows) {
    CAPTURE(row.task);
    CAPTURE(row.key);
    CAPTURE(name_of(row.shown));
    Settings settings;
    for (const std::string& setting : row.settings) settings.push_back(with_folder(row, setting));
    JobTexts usual(row.task, settings);
    JobTexts changed = usual.with(row.key + "=" + with_folder(row, row.value));
    CHECK((changed.of(row.shown) != usual.of(row.shown)));
  }
}

bool has_row(const std::string& task, const std::string& key) {
  for (const auto* rows : {&kKeysOfFiles, &kKeysBesideOthers, &kKeysOfAnswers}) {
    const bool found = std::ranges::any_of(
        *rows, [&](const KeyRow& row) { return row.task == task && row.key == key; });
    if (found) return true;
  }
  return false;
}

// Other values that a key might take, the likeliest first: the choices, then numbers and norms.
std::vector<std::string> candidates(const OptionFact& fact) {
  std::string words = fact.range;
  for (const char* separator : {", or ", " or ", ", "}) {
    for (std::size_t at; (at = words.find(separator)) != words.npos;) {
      words.replace(at, std::string(separator).size(), "\n");
    }
  }
  std::vector<std::string> values;
  std::istringstream lines(words);
  for (std::string word; std::getline(lines, word);) {
    if (word.find(' ') == word.npos) values.push_back(word);
  }
  double number = 0;
  try {
    attr_parse(fact.value, number);
    for (const double other :
         {number + 1, number - 1, 2 * number, number / 2, 0.5, 0.25, 2.0, 40.0, 2000.0}) {
      values.push_back(attr_text(other));
    }
  } catch (const Error&) {
    values.insert(values.end(), {"rmsnorm", "batchnorm", "layerscaling", "layernorm"});
  }
  std::erase(values, fact.value);
  return values;
}

// Whether a setting changes the network or the data.
bool changes(JobTexts& usual, const std::string& setting) {
  try {
    JobTexts changed = usual.with(setting);
    for (const Shown shown : {Shown::kAssets, Shown::kStep, Shown::kEvaluate, Shown::kTrain,
                              Shown::kValid, Shown::kTest}) {
      if (changed.of(shown) != usual.of(shown)) return true;
    }
  } catch (const Error&) {  // the key does not take this value
  }
  return false;
}

// Settings with which a task's data and network are small and there soon.
Settings smallest(const std::string& task) {
  Settings settings;
  if (std::filesystem::exists(key_files() / task)) {
    settings = {"data.source=" + (key_files() / task).string(), "data.train_rows=0"};
  }
  if (task == "text_classifier") settings.push_back("model.task=files");
  if (task == "skip_thoughts" || task == "attentive_reader") settings.push_back("model.width=8");
  return settings;
}

void check_keys(const std::string& task) {
  CAPTURE(task);
  JobTexts usual(task, smallest(task));
  for (const OptionFact& fact : test::small_config(smallest(task), task).facts()) {
    if (fact.name.starts_with("train.") || fact.name == "data.seed") continue;
    if (fact.name == "data.source") continue;  // the rows of files show it
    if (has_row(task, fact.name)) continue;
    CAPTURE(fact.name);
    const bool acts = std::ranges::any_of(candidates(fact), [&](const std::string& value) {
      return changes(usual, fact.name + "=" + value);
    });
    CHECK(acts);
  }
}

void check_tasks(bool with_files) {
  for (const ModelEntry& entry : all_models()) {
    const bool has_files = std::filesystem::exists(key_files() / entry.name);
    if (has_files == with_files) check_keys(entry.name);
  }
}

TEST_CASE("keys: every key of every task with files changes the network or the data" *
          doctest::test_suite("slow")) {
  check_tasks(true);
}

TEST_CASE("keys: every key of every other task changes the network or the data" *
          doctest::test_suite("slow")) {
  check_tasks(false);
}

TEST_CASE("keys: keys of files change what is read") { check_rows(kKeysOfFiles); }

TEST_CASE("keys: keys beside others change the network") { check_rows(kKeysBesideOthers); }

TEST_CASE("keys: keys of answers change what a checkpoint answers or measures" *
          doctest::test_suite("slow")) {
  check_rows(kKeysOfAnswers);
}

TEST_CASE("keys: the seed of data changes data that are drawn") { check_rows(kSeedsOfData); }

TEST_CASE("keys: texts differ by keys alone" * doctest::test_suite("slow")) {
  for (const ModelEntry& entry : all_models()) {
    const std::string task = entry.name;
    CAPTURE(task);
    JobTexts one(task, smallest(task)), other(task, smallest(task));
    for (int shown = 0; shown <= int(Shown::kScores); ++shown) {
      CAPTURE(name_of(Shown(shown)));
      CHECK((one.of(Shown(shown)) == other.of(Shown(shown))));
    }
  }
}

}  // namespace
}  // namespace keel::models
