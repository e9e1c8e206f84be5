// Where a run stands, through a checkpoint and back, and checkpoints of something else.
#include "frontend/train/run_state.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/reference/backend.h"
#include "frontend/train/step_graph.h"
#include "models/registry.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"

namespace keel::train {
namespace {

using test::small_job;

struct Run {
  Job job;
  reference::ReferenceBackend backend;
  Variables variables{backend, 5};

  explicit Run(const test::Settings& settings = {}, std::string_view model = "mnist_mlp")
      : job(small_job(settings, model)) {
    variables.declare(build_step(job));
  }
};

const RunState kState{.step = 12,
                      .epoch = 3,
                      .batch = 5,
                      .epoch_loss = 0.1 + 0.2,
                      .best = 1.0 / 3,
                      .best_step = 9,
                      .evaluations_since_best = 2,
                      .data = "train 60 rows, 0badcafe",
                      .backend = "onednn: oneDNN 3.2.0"};

TEST_CASE("run state: survives a checkpoint exactly") {
  Run from, to;
  from.variables.write("fc2/norm/bias.m", Tensor::of<float>({16}, std::vector<float>(16, 0.1f)));
  for (const RunState& state : {kState, RunState{}}) {
    const io::TensorFile file = to_checkpoint(state, from.job, from.variables);
    const RunState back = from_checkpoint(file, "here", to.job, to.variables);
    CHECK(back.step == state.step);
    CHECK(back.epoch == state.epoch);
    CHECK(back.batch == state.batch);
    CHECK(back.epoch_loss == state.epoch_loss);
    CHECK(back.best == state.best);
    CHECK(back.best_step == state.best_step);
    CHECK(back.evaluations_since_best == state.evaluations_since_best);
    CHECK(back.data == state.data);
    CHECK(back.backend == state.backend);
    CHECK(std::isnan(back.train_loss));
  }
}

TEST_CASE("run state: every variable comes back in its storage type") {
  Run from, to;
  to.variables.write("fc1/weight", Tensor(DType::kF32, {784, 16}));
  const io::TensorFile file = to_checkpoint(kState, from.job, from.variables);
  from_checkpoint(file, "here", to.job, to.variables);
  for (const auto& [name, variable] : from.variables.all()) {
    CAPTURE(name);
    CHECK(file.tensors.at(name).dtype() == DType::kF64);
    test::check_close(to.variables.read(name, true), from.variables.read(name, true), 0);
  }
}

TEST_CASE("run state: numbers that earlier versions did not write are 0, a loss is not known") {
  Run run;
  RunState later = kState;
  later.train_loss = 0.5;
  later.scheduled = {2, 7};
  later.undone = later.skipped = later.consecutive_non_finite = 3;
  io::TensorFile file = to_checkpoint(later, run.job, run.variables);
  const RunState whole = from_checkpoint(file, "here", run.job, run.variables);
  CHECK(whole.scheduled == later.scheduled);
  CHECK(whole.undone == 3);
  for (const char* key :
       {"train_loss", "scheduled", "undone", "skipped", "consecutive_non_finite"}) {
    CHECK(file.metadata.erase(key) == 1);
  }
  const RunState back = from_checkpoint(file, "here", run.job, run.variables);
  CHECK(back.step == kState.step);
  CHECK(std::isnan(back.train_loss));
  CHECK(back.scheduled == std::vector<std::int64_t>{0});
  CHECK(back.undone == 0);
  file.metadata["anchor"] = "8";  // the last of them, where that was all they knew
  CHECK(from_checkpoint(file, "here", run.job, run.variables).scheduled ==
        std::vector<std::int64_t>{8});
  CHECK(back.skipped == 0);
  CHECK(back.consecutive_non_finite == 0);
  file.metadata["left_out"] = "5";  // the names that earlier versions gave them
  file.metadata["strikes"] = "2";
  const RunState former = from_checkpoint(file, "here", run.job, run.variables);
  CHECK(former.skipped == 5);
  CHECK(former.consecutive_non_finite == 2);
}

void check_bad(Run& run, const io::TensorFile& file, std::string_view part) {
  test::check_refused([&] { from_checkpoint(file, "here", run.job, run.variables); },
                      "here: ", part, ErrorKind::kBadInput);
}

io::TensorFile checkpoint_of(const Run& run) {
  return to_checkpoint(kState, run.job, run.variables);
}

TEST_CASE("run state: a checkpoint of other options is refused, though all its shapes fit") {
  const auto option = [](const io::TensorFile& file, const char* model, const char* set,
                         std::string_view part) {
    Run other(test::Settings{set}, model);
    check_bad(other, file, part);
  };
  Run run(test::Settings{"model.norm=layernorm"});
  io::TensorFile file = checkpoint_of(run);
  option(file, "mnist_mlp", "model.norm=groupnorm{groups=4}",
         "model.norm: expected 'layernorm', with which it was trained, got 'groupnorm{groups=4}'");
  Run deep({}, "text_classifier");
  option(checkpoint_of(deep), "text_classifier", "model.dropout=0.75", "model.dropout: expected '");
  // An earlier version did not know the option.
  std::string& recipe = file.metadata.at("recipe");
  const std::size_t at = recipe.find("norm = ");
  recipe.erase(at, recipe.find('\n', at) + 1 - at);
  Run grouped(test::Settings{"model.norm=groupnorm{groups=4}"});
  CHECK(from_checkpoint(file, "here", grouped.job, grouped.variables).step == kState.step);
}

TEST_CASE("run state: counters and averages that no run can have are refused") {
  Run run(test::Settings{"model.norm=mabn"});
  io::TensorFile file = checkpoint_of(run);
  file.tensors.at("fc1/norm/step") = Tensor::of<std::int32_t>({}, {-3});
  check_bad(run, file, "tensor fc1/norm/step: expected elements from 0 to 2147483646, got -3");
  file = checkpoint_of(run);
  file.tensors.at("fc1/weight.v").as<double>()[7] = -1e-9;
  check_bad(run, file, "tensor fc1/weight.v: expected elements from 0 to inf, got -1e-09");
}

// A file as of an earlier version, which can be judged only by its names and shapes.
io::TensorFile without_recipe(io::TensorFile file) {
  CHECK(file.metadata.erase("recipe") == 1);
  return file;
}

TEST_CASE("run state: a checkpoint of another model or network is refused") {
  Run mlp, cnn({}, "mnist_cnn"), wide({"model.hidden=17"}), deep({"model.layers=3"}),
      plain({"train.optimizer=sgd"});
  check_bad(mlp, checkpoint_of(cnn), "expected a checkpoint of mnist_mlp, got one of mnist_cnn");
  check_bad(mlp, without_recipe(checkpoint_of(wide)),
            "tensor fc1/norm/bias: expected (16), got (17)");
  check_bad(deep, without_recipe(checkpoint_of(mlp)), "it has no tensor fc3/");
  check_bad(mlp, without_recipe(checkpoint_of(deep)),
            "tensor fc3/norm/bias does not belong to this run");
  check_bad(mlp, checkpoint_of(plain), "it has no tensor fc1/norm/bias.m");
}

TEST_CASE("run state: a refused checkpoint leaves the variables as they were") {
  Run mlp, wide({"model.hidden=17"});
  const Tensor before = mlp.variables.read("fc1/weight", true);
  const auto check_untouched = [&](io::TensorFile file, std::string_view part) {
    file.tensors.at("fc1/weight").as<double>()[0] += 1;
    check_bad(mlp, file, part);
    test::check_close(mlp.variables.read("fc1/weight", true), before, 0);
  };
  check_untouched(without_recipe(checkpoint_of(wide)), "expected (16), got (17)");
  check_untouched(checkpoint_of(wide), "model.hidden: expected '17'");
  io::TensorFile file = checkpoint_of(mlp);
  file.tensors.at("logits/weight.v").as<double>()[0] = -1;
  check_untouched(std::move(file), "tensor logits/weight.v: expected elements");
  file = checkpoint_of(mlp);
  file.tensors["zzz"] = Tensor(DType::kF64, {1});
  check_untouched(std::move(file), "tensor zzz does not belong");
  file = checkpoint_of(mlp);
  file.metadata["best_step"] = "x";
  check_untouched(std::move(file), "metadata 'best_step'");
}

TEST_CASE("run state: damaged metadata is refused by name") {
  Run run;
  for (const char* key : {"model", "step", "epoch", "batch", "epoch_loss", "best", "best_step",
                          "evaluations_since_best"}) {
    CAPTURE(std::string(key));
    io::TensorFile file = checkpoint_of(run);
    file.metadata.erase(key);
    check_bad(run, file, fmt::format("its metadata has no '{}'", key));
    if (key == std::string("model")) continue;
    file.metadata[key] = "12 eggs";
    check_bad(run, file, fmt::format("metadata '{}': expected a number, got '12 eggs'", key));
  }
}

TEST_CASE("run state: a state that no run can be in is refused") {
  Run run;
  const std::string many = std::to_string(std::int64_t(1) << 31);
  for (const char* key : {"step", "epoch", "batch", "best_step", "evaluations_since_best"}) {
    for (const std::string& value : {std::string("-2"), many}) {
      CAPTURE(std::string(key));
      io::TensorFile file = checkpoint_of(run);
      file.metadata[key] = value;
      const int least = key == std::string("best_step") ? -1 : 0;
      check_bad(run, file,
                fmt::format("metadata '{}': expected {} to 2147483647, got {}", key, least, value));
    }
  }
  for (const char* key : {"epoch_loss", "best"}) {
    io::TensorFile file = checkpoint_of(run);
    file.metadata[key] = "nan";
    check_bad(run, file, fmt::format("metadata '{}': expected a number, got nan", key));
  }
  const std::pair<const char*, const char*> others[] = {
      {"epoch_items", "-1"}, {"epoch_items", "inf"}, {"epoch_loss", "inf"}, {"best", "-1e308"},
      {"best", "-1e-9"},     {"best", "100.5"},      {"best", "-inf"}};
  for (const auto& [key, value] : others) {
    CAPTURE(value);
    io::TensorFile file = checkpoint_of(run);
    file.metadata[key] = value;
    check_bad(run, file, fmt::format("metadata '{}': expected a", key));
  }
}

TEST_CASE("run state: checkpoints that a recipe asked for ascend, none after the state itself") {
  Run run;
  io::TensorFile file = checkpoint_of(run);
  file.metadata["step"] = "7";
  for (const char* wrong : {"8", "2 8", "3 2", "2 2", "-1", "2 x", "2  3"}) {
    CAPTURE(std::string(wrong));
    file.metadata["scheduled"] = wrong;
    check_bad(run, file, "metadata 'scheduled': expected ascending steps up to 7, got");
  }
  file.metadata["scheduled"] = "0 7";
  const RunState state = from_checkpoint(file, "here", run.job, run.variables);
  CHECK(state.scheduled == std::vector<std::int64_t>{0, 7});
}

TEST_CASE("run state: weights of another type than a backend keeps are refused by name") {
  Run run;
  for (const DType type : {DType::kBF16, DType::kI32, DType::kU8}) {
    io::TensorFile file = checkpoint_of(run);
    Tensor& weight = file.tensors.at("fc2/weight");
    weight = Tensor(type, weight.shape());
    check_bad(run, file,
              fmt::format("tensor fc2/weight: expected f32 or f64, got {}", name_of(type)));
  }
  io::TensorFile file = checkpoint_of(run);
  Tensor& weight = file.tensors.at("fc2/weight");
  weight = weight.to(DType::kF32);
  CHECK(from_checkpoint(file, "here", run.job, run.variables).step == kState.step);
}

TEST_CASE("run state: weights alone pass over the optimizer's state") {
  Run from;
  Variables weights(from.backend, 6);
  weights.declare(build_evaluate(from.job, {1}));
  load_variables(checkpoint_of(from), "here", weights);
  test::check_close(weights.read("fc2/weight", true), from.variables.read("fc2/weight", true), 0);
}

TEST_CASE("run state: a checkpoint holds its recipe") {
  const Run run({"train.lr=0.25", "model.norm=batchnorm{keep=0.5}"});
  const MakeTask make = [](const std::string& name) { return models::find_model(name).make(); };
  io::TensorFile file = checkpoint_of(run);
  CHECK(job_of_checkpoint(file, "here", make).config().to_toml() == run.job.config().to_toml());
  const auto check_bad = [&](std::string_view part) {
    test::check_refused([&] { job_of_checkpoint(file, "here", make); }, "here: ", part,
                        ErrorKind::kBadInput);
  };
  file.metadata["recipe"] = "[model]\nhidden = 1000000\nnorm = 'batchnorm'";
  check_bad("1000000), got (");
  file.metadata["recipe"] = "[train]\nbatch = 0";
  check_bad("train.batch: expected 1 to 2147483647, got 0");
  file.metadata["recipe"] = "[train]\nbach = 1";
  check_bad("'train.bach' is unknown; nearest: 'train.batch'");
  file.metadata["recipe"] = "[train";
  check_bad("metadata: recipe:1: ");
  file.metadata.erase("recipe");
  check_bad("no 'recipe'");
  file.metadata["model"] = "mnist_mpl";
  file.metadata["recipe"] = "";
  check_bad("'mnist_mpl' is unknown; nearest: 'mnist_mlp'");
}

}  // namespace
}  // namespace keel::train
