// Every key of training changes a run: its losses, its weights, its checkpoints or when it ends. A
// key that nothing reads, or that is not passed on, changes none of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "backends/backends.h"
#include "frontend/io/safetensors.h"
#include "frontend/train/trainer.h"
#include "tests/support/poisoned.h"
#include "tests/support/same_run.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::train {
namespace {

namespace fs = std::filesystem;
using test::operator+;
using test::Settings;

// The training that shows the effect of a key.
enum class KeyRun {
  kLinear,    // deep_linear: two epochs of five updates
  kNarrow,    // the same on the reference backend, which takes bf16 on every machine
  kTable,     // skip_thoughts, whose words are rows of a table
  kPoisoned,  // digits, whose updates 3, 4 and 5 are not finite
};

// A key with another value than it has by default, and the settings under which it acts.
struct TrainKey {
  std::string key, value;
  Settings settings = {};
  KeyRun run = KeyRun::kLinear;
};

const std::vector<TrainKey> kTrainKeys{
    {"batch", "10"},
    {"epochs", "3"},
    {"max_steps", "3"},
    {"accumulate", "2"},
    {"seed", "2"},
    {"optimizer", "sgd"},
    {"lr", "0.01"},
    {"momentum", "0.9", {"train.optimizer=sgd"}},
    {"weight_decay", "0.1"},
    {"decay", "all", {"train.weight_decay=0.1"}},
    {"embedding_updates", "lazy", {}, KeyRun::kTable},
    {"nesterov", "true", {"train.optimizer=sgd", "train.momentum=0.9"}},
    {"beta1", "0.5"},
    {"beta2", "0.5"},
    {"eps", "0.1"},
    {"schedule", "cosine"},
    {"warmup", "4"},
    {"step_every", "2", {"train.schedule=step", "train.step_every=3"}},
    {"milestones", "[50]", {"train.schedule=milestones", "train.milestones=[20]"}},
    {"step_factor", "0.5", {"train.schedule=step", "train.step_every=3"}},
    {"min_factor", "0.5", {"train.schedule=cosine"}},
    {"warmup_init_lr", "1e-4", {"train.warmup=4"}},
    {"stop_min_lr", "5e-4", {"train.schedule=step", "train.step_every=3"}},
    {"clip", "global", {"train.clip_limit=0.01"}},
    {"clip_limit", "0.02", {"train.clip=global", "train.clip_limit=0.01"}},
    {"shards", "2"},
    {"statistics", "local", {"model.norm=batchnorm{keep=0.5}", "train.shards=2"}},
    {"compute", "bf16", {}, KeyRun::kNarrow},
    {"eval_every", "2u"},
    {"test_every", "1e"},
    // Updates of nothing, of which no validation is better than the first.
    {"patience", "1", {"train.optimizer=sgd", "train.lr=1e-30", "train.epochs=4"}},
    {"checkpoint_every", "2"},
    {"keep_checkpoints", "1"},
    {"average_last", "2"},
    {"log_every", "2"},
    {"on_nonfinite", "skip", {}, KeyRun::kPoisoned},
    {"nonfinite_limit", "2", {"train.on_nonfinite=skip"}, KeyRun::kPoisoned},
};

Job trained_job(KeyRun what, const Settings& settings) {
  if (what == KeyRun::kPoisoned) return test::poisoned({{3, 4, 5}}, settings);
  if (what == KeyRun::kTable) {
    return test::small_job(Settings{"train.max_steps=3", "model.width=8"} + settings,
                           "skip_thoughts");
  }
  const Settings small{"model.layers=2", "model.width=4", "model.samples=40", "train.batch=8",
                       "train.epochs=2"};
  return test::small_job(small + settings, "deep_linear");
}

std::string tensors_text(const fs::path& file) {
  std::string text = file.filename().string();
  for (const auto& [name, tensor] : io::read_safetensors(file).tensors) {
    text += " " + name + " " + tensor.type().text();
    text.append(reinterpret_cast<const char*>(tensor.data()), std::size_t(tensor.bytes()));
  }
  return text + "\n";
}

// The files that a run leaves, but for its times and its config. Updates that are not finite may
// end it.
std::string left_by_run(KeyRun what, const Settings& settings) {
  const test::TempDir folder;
  const Job job = trained_job(what, settings);
  const auto backend = make_backend(what == KeyRun::kNarrow ? "reference" : default_backend());
  try {
    Trainer(*backend, job, {.folder = folder.path(), .quiet = true, .facts = {}}).run();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDiverged) throw;
  }
  std::string text = test::timeless_result(folder.path()).dump() + "\n";
  for (const auto& line : test::timeless_metrics(folder.path())) text += line.dump() + "\n";
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) text += tensors_text(file);
  return text;
}

TEST_CASE("train keys: every key of training changes a run" * doctest::test_suite("slow")) {
  std::map<std::pair<KeyRun, Settings>, std::string> usual;  // many keys share one
  for (const OptionFact& fact : option_facts(TrainOptions{})) {
    CAPTURE(fact.name);
    // The program makes the observers that it names (tests/studies/observers_test.cpp).
    if (fact.name == "observe") continue;
    const auto row = std::ranges::find(kTrainKeys, fact.name, &TrainKey::key);
    REQUIRE(row != kTrainKeys.end());
    std::string& left = usual[{row->run, row->settings}];
    if (left.empty()) left = left_by_run(row->run, row->settings);
    const Settings changed = row->settings + Settings{"train." + row->key + "=" + row->value};
    CHECK((left_by_run(row->run, changed) != left));
  }
}

TEST_CASE("train keys: runs differ by keys alone" * doctest::test_suite("slow")) {
  for (const KeyRun what : {KeyRun::kLinear, KeyRun::kNarrow, KeyRun::kTable, KeyRun::kPoisoned}) {
    CAPTURE(int(what));
    CHECK((left_by_run(what, {}) == left_by_run(what, {})));
  }
}

}  // namespace
}  // namespace keel::train
