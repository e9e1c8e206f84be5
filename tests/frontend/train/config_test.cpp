// Recipes and overrides: what is read, what is refused, and that a resolved recipe reads back.
#include "frontend/train/config.h"

#include <doctest/doctest.h>

#include "models/registry.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"

namespace keel::train {
namespace {

Config config_of(std::string_view model = "mnist_mlp") {
  return Config(models::find_model(model).make());
}

void check_toml_refused(const std::string& toml, std::string_view beginning,
                        std::string_view part = "") {
  CAPTURE(toml);
  test::check_refused([&] { config_of().apply_toml(toml, "a.toml"); }, beginning, part);
}

void check_set_refused(std::string_view key, std::string_view value, std::string_view beginning,
                       std::string_view part) {
  test::check_refused([&] { config_of().set(key, value); }, beginning, part);
}

TEST_CASE("config: every recipe of every model loads, and is valid") {
  int recipes = 0;
  for (const auto& entry : models::all_models()) {
    for (const auto& recipe : entry.recipes) {
      CAPTURE(entry.name);
      CAPTURE(recipe.name);
      Config config(entry.make());
      config.apply_toml(recipe.toml, recipe.name);
      config.validate();
      CHECK(recipe.toml.starts_with("# "));
      ++recipes;
    }
  }
  CHECK(recipes >= 5);
}

TEST_CASE("config: a recipe sets values of every section and kind") {
  Config config = config_of();
  config.apply_toml(
      "[model]\nhidden = 32\nnorm = \"batchnorm{eps=1e-3}\"\n[data]\nsource = 'x y'\n"
      "[train]\nlr = 1e-2\nbatch = 1_000\nnesterov = true\nmomentum = 0\n[run]\nanything = 1\n",
      "a.toml");
  CHECK(config.task().options()[0].second == "32");
  CHECK(config.task().options()[2].second == "batchnorm{eps=1e-3}");
  CHECK(config.data().source == "x y");
  CHECK(config.train().lr == 0.01);
  CHECK(config.train().batch == 1000);
  CHECK(config.train().nesterov);
  CHECK(config.train().momentum == 0);
  CHECK(config.train().epochs == TrainOptions{}.epochs);
}

TEST_CASE("config: values are read by their former names, too") {
  Config config = config_of("order_embeddings");
  config.apply_toml("[model]\nfeatures = \"made_up\"\n", "a.toml");
  CHECK(config.to_toml().find("features = 'synthetic'") != std::string::npos);
  CHECK(config.to_toml().find("made_up") == std::string::npos);
  config = config_of("char_lm");
  config.apply_toml("[model]\npre_norm = true\n", "a.toml");
  CHECK(config.to_toml().find("place = 'pre'") != std::string::npos);
  config.set("model.pre_norm", "false");
  CHECK(config.to_toml().find("place = 'post'") != std::string::npos);
}

TEST_CASE("config: weight decay is for weights, unless it is for all") {
  Config config = config_of();
  CHECK_FALSE(config.train().optimizer_options().decays_all);
  config.set("train.decay", "all");
  CHECK(config.train().optimizer_options().decays_all);
}

TEST_CASE("config: later values win") {
  Config config = config_of();
  config.apply_toml("[train]\nlr = 1\nbatch = 7\n", "a.toml");
  config.apply_toml("[train]\nlr = 2\n", "b.toml");
  config.set("train.lr", "3");
  CHECK(config.train().lr == 3);
  CHECK(config.train().batch == 7);
}

TEST_CASE("config: the resolved recipe reads back equal") {
  Config config = config_of();
  config.apply_toml(
      "[model]\nhidden = 5\nnorm = 'layernorm{eps=1e-3}'\n[data]\nsource = \"a'b \\\"c\\\\ d\"\n"
      "seed = 9\n[train]\nlr = 0.1\nbeta2 = 0.98\neps = 1e-9\nnesterov = true\nschedule = "
      "'cosine'\n"
      "warmup = 4000\nclip = 'global'\nclip_limit = 0.30000000000000004\n",
      "a.toml");
  Config copy = config_of();
  copy.apply_toml(config.to_toml({{"cpu", "it's \"fast\""}}), "config.toml");
  CHECK(copy.to_toml() == config.to_toml());
  CHECK(copy.data().source == "a'b \"c\\ d");
  CHECK(copy.train().clip_limit == 0.30000000000000004);
}

TEST_CASE("config: a text that looks like a number reads back letter by letter") {
  for (const char* text : {"007", "1e5", ".5", "5.", "-1", "0.25", "1e-08", "inf", "true", "a b"}) {
    CAPTURE(std::string(text));
    Config config = config_of(), copy = config_of();
    config.set("model.batchnorm_options", text);
    copy.apply_toml(config.to_toml(), "config.toml");
    CHECK(copy.task().options() == config.task().options());
  }
}

TEST_CASE("config: defaults of every model read back equal") {
  for (const auto& entry : models::all_models()) {
    const Config config(entry.make());
    Config copy(entry.make());
    copy.set("train.batch", "3");
    copy.apply_toml(config.to_toml(), "config.toml");
    CHECK(copy.to_toml() == config.to_toml());
  }
}

TEST_CASE("config: unknown names are refused with the nearest and the line") {
  check_toml_refused("[train]\nlr = 1\nbach = 3\n", "a.toml:3: key 'train.bach' is unknown",
                     "nearest: 'train.batch'");
  check_toml_refused("\n[model]\nnrom = 'none'\n", "a.toml:3: key 'model.nrom' is unknown",
                     "nearest: 'model.norm'");
  check_toml_refused("[trian]\nlr = 1\n", "a.toml: table 'trian' is unknown", "nearest: 'train'");
  check_toml_refused("lr = 1\n", "a.toml: table 'lr' is unknown");
  check_toml_refused("train = 1\n", "a.toml: table 'train'");
  // Whether a model's options fit is asked when all are set.
  Config config = test::small_config();
  config.set("model.norm", "lernorm");
  test::check_refused([&] { config.validate(); }, "model.norm: 'lernorm' is unknown",
                      "nearest: 'layernorm'");
  check_set_refused("train.lrr", "1", "key 'train.lrr' is unknown", "nearest: 'train.lr'");
  check_set_refused("lr", "1", "key 'lr' is unknown", "nearest: 'train.lr'");
  check_set_refused("model.lr", "1", "key 'model.lr' is unknown", "nearest: 'train.lr'");
  check_set_refused("train.learning_rate", "1", "key 'train.learning_rate' is unknown",
                    "nearest: 'train.lr'");
  check_set_refused("batch_size", "1", "key 'batch_size' is unknown", "nearest: 'train.batch'");
  check_set_refused("train.num_epochs", "1", "key 'train.num_epochs' is unknown",
                    "nearest: 'train.epochs'");
  check_set_refused("train.norm", "none", "key 'train.norm' is unknown", "nearest: 'model.norm'");
  check_set_refused("", "1", "key '' is unknown", "");
  check_set_refused("model.hiden", "1", "key 'model.hiden'", "nearest: 'model.hidden'");
}

TEST_CASE("config: values of another kind are refused") {
  check_toml_refused("[train]\nbatch = 'many'\n",
                     "a.toml:2: train.batch:", "expected a whole number, got 'many'");
  check_toml_refused("[train]\nbatch = 1.5\n", "a.toml:2: train.batch:", "a whole number");
  check_toml_refused("[train]\n\nlr = [1]\n", "a.toml:3: train.lr:", "expected a text, number");
  check_toml_refused("[train]\nlr = 2024-01-01\n", "a.toml:2: train.lr:", "expected a text");
  check_toml_refused("[train]\nlr.x = 1\n", "a.toml:2: train.lr:", "expected a text");
  check_toml_refused("[train]\nnesterov = 2\n", "a.toml:2: train.nesterov:", "true or false");
  check_toml_refused("[data]\nseed = true\n", "a.toml:2: data.seed:", "a whole number");
  check_set_refused("train.lr", "1e-3x", "train.lr:", "expected a number, got '1e-3x'");
  check_set_refused("data.train_rows", "", "data.train_rows:", "a whole number");
}

TEST_CASE("config: text that is not TOML is refused with its line") {
  check_toml_refused("[train]\nlr = \n", "a.toml:2: ");
  check_toml_refused("[train]\nlr = 1\nlr = 2\n", "a.toml:3: ");
  check_toml_refused("[train\n", "a.toml:1: ");
  check_toml_refused("lr = \"\xff\"\n", "a.toml:1: ");
  std::string deep;
  for (int i = 0; i < 200000; ++i) deep += "a.";
  check_toml_refused(deep + "a = 1", "a.toml: expected at most 1000 dots, got 200000");
}

TEST_CASE("config: values that seem to be meant are refused where they would mean another thing") {
  const auto refused = [](const char* key, const char* value, std::string_view part) {
    test::check_refused(
        [&] {
          Config config = test::small_config();
          config.set(key, value);
          config.validate();
        },
        fmt::format("{}: ", key), part);
  };
  refused("train.eps", "1e-300", "expected > 0 within float32, got 1e-300, which is 0 in float32");
  refused("train.lr", "1e-60", "which is 0 in float32");
  refused("train.nesterov", "1", "expected true or false, got '1'");
  refused("train.eval_every", "2", "expected epochs or updates like 1e or 300u, got '2'");
  refused("train.test_every", "-1", "expected epochs or updates like 1e or 300u, got '-1'");
}

TEST_CASE("config: values out of range are refused by name") {
  const struct {
    const char *key, *value, *part;
  } rows[] = {
      {"train.batch", "0", "expected 1 to 2147483647, got 0"},
      {"train.batch", "2147483648", "expected 1 to 2147483647, got 2147483648"},
      {"train.epochs", "0", "expected 1 to 2147483647"},
      {"train.epochs", "9223372036854775807", "expected 1 to 2147483647"},
      {"train.max_steps", "-1", "expected >= 0"},
      {"train.accumulate", "0", "expected 1 to 1000000"},
      {"train.accumulate", "1000001", "expected 1 to 1000000, got 1000001"},
      {"train.seed", "-1", "train.seed: expected >= 0, got -1"},
      {"train.lr", "-1e-3", "expected in (0, 1000000), got -0.001"},
      {"train.lr", "0", "expected in (0, 1000000)"},
      {"train.lr", "nan", "got nan"},
      {"train.lr", "1e30", "expected in (0, 1000000), got 1e+30"},
      {"train.momentum", "1", "expected in [0, 1)"},
      {"train.momentum", "-0.1", "expected in [0, 1)"},
      {"train.weight_decay", "-1", "expected >= 0"},
      {"train.weight_decay", "1e39", "expected >= 0 within float32, got 1e+39"},
      {"train.beta1", "1", "expected in [0, 1)"},
      {"train.beta1", "-0.1", "expected in [0, 1)"},
      {"train.beta2", "1", "expected in [0, 1)"},
      {"train.beta2", "-0.1", "expected in [0, 1)"},
      {"train.eps", "0", "expected > 0"},
      {"train.eval_every", "0", "at least 1, got 0e"},
      {"train.test_every", "-1e", "or 0, got -1e"},
      {"train.patience", "-1", "expected >= 0"},
      {"train.checkpoint_every", "-1", "expected >= 0"},
      {"train.keep_checkpoints", "0", "expected 1 to 1000000"},
      {"train.keep_checkpoints", "4294967297", "1 to 1000000, got 4294967297"},
      {"train.average_last", "4", "expected 0 to keep_checkpoints"},
      {"train.average_last", "-1", "expected 0 to keep_checkpoints"},
      {"train.log_every", "0", "expected >= 1"},
      {"train.optimizer", "adan", "adagrad or rmsprop_graves, got 'adan'"},
      {"train.decay", "weight", "expected weights or all, got 'weight'"},
      {"train.embedding_updates", "eager", "expected exact or lazy, got 'eager'"},
      {"train.schedule", "cosin",
       "expected constant, inverse_sqrt, cosine, cosine_absolute, step or milestones, got "
       "'cosin'"},
      {"train.schedule", "step", "train.step_every"},
      {"train.clip", "globall", "expected none, global, per_tensor or element, got 'globall'"},
      {"train.clip_limit", "0", "expected > 0"},
      {"data.source", "", "expected 'builtin' or a folder"},
      {"data.source", "caf\xe9", "expected UTF-8"},
      {"data.train_rows", "-1", "expected >= 0"},
      {"data.seed", "-1", "data.seed: expected >= 0, got -1"}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.key));
    Config config = config_of();
    const auto use = [&] {
      config.set(row.key, row.value);
      config.validate();
    };
    test::check_refused(use, std::string(row.key).substr(0, 6), row.part);
  }
}

}  // namespace
}  // namespace keel::train
