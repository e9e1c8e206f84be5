// The network of the attentive reader: gradients, attention, padding, names of entities and norms.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "backends/reference/backend.h"
#include "frontend/data/token_batches.h"
#include "frontend/train/evaluator.h"
#include "models/attentive_reader/builtin.h"
#include "models/attentive_reader/model.h"
#include "models/registry.h"
#include "tests/models/helpers.h"
#include "tests/models/reader_questions.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

constexpr const char* kModel = "attentive_reader";

train::Job job_with(Settings settings) {
  settings.insert(settings.begin(), "model.dropout=0");
  return small_job(settings, kModel);
}

// The contents after the ends of sequences.
enum class Behind { kRepeated, kZeros };

// The first four training questions as a batch of these lengths, or of those that it has.
task::Batch batch_of(const train::Job& job, const task::Sizes& lengths, Behind behind) {
  const auto stream = job.splits().stream(task::Split::kTrain, {.shuffle = {}});
  const task::Batch& first = stream->pick(first_rows(4));
  task::Batch batch{{4, lengths[0], lengths[1]}, {}, first.rows, first.items};
  for (const task::Input& input : job.network().inputs(batch.sizes)) {
    batch.values.emplace_back(input.type);
  }
  for (const std::size_t value : {0, 2}) {
    const std::int64_t from = first.values[value].shape()[1], to = batch.sizes[1 + value / 2];
    for (std::int64_t row = 0; row < 4; ++row) {
      std::int64_t tokens = 0;
      while (tokens < from && first.values[value + 1].at(row * from + tokens) == 1) ++tokens;
      for (std::int64_t t = 0; t < to; ++t) {
        const auto at = std::size_t(row * to + t);
        const double again = first.values[value].at(row * from + t % tokens);
        const bool repeats = t < tokens || behind == Behind::kRepeated;
        batch.values[value].as<std::int32_t>()[at] = repeats ? std::int32_t(again) : 0;
        batch.values[value + 1].as<std::uint8_t>()[at] = t < tokens;
      }
    }
  }
  std::ranges::copy(first.values[4].as<std::int32_t>(), batch.values[4].as<std::int32_t>().begin());
  return batch;
}

// The loss of a batch in training mode, its gradients, and the attention.
struct Run {
  double loss = 0;
  std::map<std::string, Tensor> gradients;
  Tensor alpha;

  Run(const train::Job& job, const task::Batch& batch,
      const std::string& backend_name = "reference") {
    const auto backend = make_backend(backend_name);
    Graph g;
    nn::Net net = train::sampling_net(g, job, nn::Mode::kTrain);
    const task::Outputs outputs =
        job.network().build(net, train::add_inputs(g, job.network(), batch.sizes));
    g.mark_output("loss", outputs.loss_sum);
    g.mark_output("alpha", outputs.predictions[1].value);
    const std::vector<std::string> names = names_of(g, NodeKind::kParameter);
    const std::vector<Value> all = gradient(g, outputs.loss_sum, g.leaves(NodeKind::kParameter));
    for (std::size_t i = 0; i < names.size(); ++i) g.mark_output("d " + names[i], all[i]);
    Variables variables(*backend, 5);
    Program program(*backend, variables, g);
    train::Feeder(job.network()).feed(program, batch, {});
    program.run();
    loss = program.scalar("loss");
    alpha = program.fetch("alpha");
    for (const std::string& name : names) gradients[name] = program.fetch("d " + name);
  }
};

double largest_difference(const Run& a, const Run& b) {
  double most = std::abs(a.loss - b.loss);
  for (const auto& [name, d] : a.gradients) {
    const Tensor& other = b.gradients.at(name);
    for (std::int64_t e = 0; e < d.elements(); ++e) {
      most = std::max(most, std::abs(d.at(e) - other.at(e)));
    }
  }
  return most;
}

TEST_CASE("attentive_reader: the gradient of the whole network by central differences" *
          doctest::test_suite("slow")) {
  for (const Settings& settings : {Settings{"model.norm=none"},
                                   {"model.norm=layernorm"},
                                   {"model.norm=layernorm", "model.norm_of=sum"},
                                   {"model.norm=layernorm", "model.sites=everywhere"},
                                   {"model.norm=layernorm", "model.bidirectional=true"}}) {
    CAPTURE(settings.back());
    check_gradients(job_with(settings), 3);
  }
}

TEST_CASE("attentive_reader: attention is 1 over a passage's tokens and 0 after them") {
  const train::Job job = job_with({});
  const task::Batch batch = batch_of(job, {64, 8}, Behind::kRepeated);
  const Run run(job, batch);
  for (std::int64_t row = 0; row < 4; ++row) {
    double sum = 0, least = 1;
    for (std::int64_t t = 0; t < 64; ++t) {
      const double alpha = run.alpha.at(row * 64 + t);
      const bool is_text = batch.values[1].at(row * 64 + t) == 1;
      if (is_text) sum += alpha;
      if (is_text) least = std::min(least, alpha);
      if (!is_text) CHECK(alpha == 0);
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-6));
    CHECK(least > 0);
  }
}

TEST_CASE("attentive_reader: what stands after the end matters to padded statistics alone" *
          doctest::test_suite("slow")) {
  const auto difference = [](const Settings& settings) {
    const train::Job job = job_with(settings);
    return largest_difference(Run(job, batch_of(job, {64, 16}, Behind::kRepeated)),
                              Run(job, batch_of(job, {64, 16}, Behind::kZeros)));
  };
  CHECK(difference({"model.norm=layernorm"}) == 0);
  CHECK(difference({"model.norm=layernorm", "model.bidirectional=true"}) == 0);
  CHECK(difference({"model.norm=layernorm", "model.statistics=padded"}) == 0);
  CHECK(difference({"model.norm=batchnorm{gain_init=0.1,bias=false}"}) < 1e-12);
  CHECK(difference({"model.norm=batchnorm{bias=false}", "model.statistics=padded"}) > 1e-3);
}

TEST_CASE("attentive_reader: how far a sequence is padded does not matter, to rounding" *
          doctest::test_suite("slow")) {
  for (const Settings& settings :
       {Settings{"model.norm=none"},
        {"model.norm=layernorm"},
        {"model.norm=layernorm", "model.bidirectional=true"},
        {"model.norm=none", "model.bidirectional=true", "model.statistics=padded"},
        {"model.norm=batchnorm{gain_init=0.1,bias=false}", "model.bidirectional=true"},
        {"model.norm=batchnorm{gain_init=0.1,bias=false}"}}) {
    CAPTURE(settings.back());
    const train::Job job = job_with(settings);
    CHECK(largest_difference(Run(job, batch_of(job, {48, 8}, Behind::kRepeated)),
                             Run(job, batch_of(job, {80, 24}, Behind::kRepeated))) < 1e-6);
  }
}

TEST_CASE(
    "attentive_reader: both ways to count statistics read the same text with norms of a row") {
  const train::Job text = job_with({"model.statistics=text"}),
                   padded = job_with({"model.statistics=padded"});
  const task::Batch batch = batch_of(text, {64, 16}, Behind::kRepeated);
  CHECK(largest_difference(Run(text, batch), Run(padded, batch)) < 1e-6);
}

// A folder with the questions of small_questions() whose entities are called otherwise.
void write_renamed(const test::TempDir& folder) {
  for (const char* part : {"training", "validation", "test"}) {
    const std::string name = fmt::format("{}.question", part);
    std::string text;
    for (Question question :
         read_questions(test::read_bytes(test::small_questions() / name), name)) {
      test::rename_entities(question, [](int entity) { return (entity + 7) % 20; });
      text += text_of_question(question, "renamed");
    }
    test::write_bytes(folder / name, text);
  }
}

TEST_CASE("attentive_reader: what entities are called changes no byte of a training and its error" *
          doctest::test_suite("slow")) {
  const test::TempDir folder, runs;
  write_renamed(folder);
  const auto train = [&](const std::string& name, const std::string& source) {
    const train::Job job =
        job_with({"data.source=" + source, "train.max_steps=12", "train.lr=1e-2"});
    return test::train_in(runs / name, job);
  };
  train("one", test::small_questions().string());
  train("other", folder.path().string());
  const auto one = io::read_safetensors(test::step_file(runs / "one", 12)),
             other = io::read_safetensors(test::step_file(runs / "other", 12));
  for (const auto& [name, value] : one.tensors) {
    CAPTURE(name);
    const Tensor& renamed = other.tensors.at(name);
    CHECK(std::memcmp(value.data(), renamed.data(), std::size_t(value.bytes())) == 0);
  }
}

TEST_CASE("attentive_reader: the error does not depend on which numbers entities draw" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const train::Job job = small_job({"data.source=builtin", "data.train_rows=400",
                                    "train.max_steps=60", "train.batch=32", "train.lr=1e-2"},
                                   kModel);
  test::train_in(temp.path(), job);
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  train::Evaluator evaluator(*backend, variables, job);
  evaluator.declare();
  const auto path = test::step_file(temp.path(), 60);
  train::load_variables(io::read_safetensors(path), path, variables);
  // Training streams draw by their seed, in whole batches: 384 of 400 questions.
  std::vector<double> errors;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto stream = job.splits().stream(task::Split::kTrain, {.batch = 400, .shuffle = seed});
    errors.push_back(evaluator.run(*stream).at("error"));
  }
  const auto [least, most] = std::ranges::minmax(errors);
  // The error of 400 questions has a deviation of at most 2.5 %; two of them differ by five at
  // most.
  CHECK(most - least < 5 * 2.5);
  CHECK(most > least);
}

TEST_CASE("attentive_reader: norms stand in the LSTMs, or everywhere but at words and answers") {
  const auto names = [](const char* setting) {
    Graph g;
    nn::Net net{.graph = g};
    const train::Job job = job_with({setting});
    job.network().build(net, train::add_inputs(g, job.network(), {2, 16, 8}));
    std::set<std::string> gains;
    for (const std::string& name : names_of(g, NodeKind::kParameter)) {
      if (name.ends_with("/gain")) gains.insert(name);
    }
    return gains;
  };
  const std::set<std::string> lstm{"passage/cell_norm/gain",      "passage/input/norm/gain",
                                   "passage/recurrent/norm/gain", "question/cell_norm/gain",
                                   "question/input/norm/gain",    "question/recurrent/norm/gain"};
  CHECK(names("model.sites=lstm") == lstm);
  std::set<std::string> all = lstm;
  all.insert({"attention/passage/norm/gain", "attention/question/norm/gain",
              "readout/context/norm/gain", "readout/question/norm/gain", "readout/mean/norm/gain"});
  CHECK(names("model.sites=everywhere") == all);
  const std::set<std::string> of_sum{"passage/cell_norm/gain", "passage/norm/gain",
                                     "question/cell_norm/gain", "question/norm/gain"};
  CHECK(names("model.norm_of=sum") == of_sum);
}

std::set<std::string> states_of(const Settings& settings) {
  const Graph g = train::build_step(job_with(settings), {2, 16, 8});
  const std::vector<std::string> names = names_of(g, NodeKind::kState);
  return {names.begin(), names.end()};
}

TEST_CASE("attentive_reader: inputs may have a norm of their own, over all time steps") {
  const std::string norm = "model.norm=batchnorm{gain_init=0.1}";
  const std::set<std::string> one = states_of({norm}),
                              two = states_of({norm, "model.input_norm=sequencebatchnorm"});
  for (const std::string lstm : {"passage", "question"}) {
    CHECK(one.contains(lstm + "/input/norm/t3/running_mean"));
    CHECK_FALSE(two.contains(lstm + "/input/norm/t3/running_mean"));
    CHECK(two.contains(lstm + "/input/norm/running_mean"));
    CHECK(two.contains(lstm + "/recurrent/norm/t3/running_mean"));
  }
}

TEST_CASE("attentive_reader: of the batch norms of an LSTM the cell's has a bias") {
  for (const Settings& settings :
       {Settings{"model.norm=batchnorm{gain_init=0.1,keep=0.99}"},
        {"model.norm=batchnorm{keep=0.99}", "model.input_norm=sequencebatchnorm"}}) {
    const Graph g = train::build_step(job_with(settings), {2, 16, 8});
    const std::vector<std::string> all = names_of(g, NodeKind::kParameter);
    const std::set<std::string> names(all.begin(), all.end());
    CHECK(names.contains("passage/cell_norm/bias"));
    CHECK_FALSE(names.contains("passage/input/norm/bias"));
    CHECK_FALSE(names.contains("passage/recurrent/norm/bias"));
  }
}

// A passage of the longest length is padded to its bucket, and steps of padding are steps, too.
TEST_CASE("attentive_reader: recipes with batch norms keep statistics of every step of training") {
  const ModelEntry& entry = find_model(kModel);
  for (const char* name : {"bn_lstm", "bn_everywhere", "bn_e_star", "bn_e_star_star"}) {
    CAPTURE(name);
    const task::OptionValues settings = train::read_settings(find_recipe(entry, name), name);
    const std::map<std::string, std::string> values(settings.begin(), settings.end());
    const std::int64_t longest = std::stoll(values.at("model.longest"));
    CHECK(nn::Norm::parse(values.at("model.norm")).steps() == data::bucket_of(longest, 16));
  }
}

// The parameters of a network of width d, without word vectors and the map to answers.
std::int64_t count_of(Settings settings, std::int64_t d) {
  Graph g;
  nn::Net net{.graph = g};
  settings.insert(settings.end(), {"model.norm=none", fmt::format("model.width={}", d)});
  const train::Job job = job_with(settings);
  job.network().build(net, train::add_inputs(g, job.network(), {2, 16, 8}));
  const std::int64_t numbers = ReaderNumbers::parse(job.network().assets()).size();
  return count_parameters(g) - numbers * (2 * d + 1);
}

TEST_CASE("attentive_reader: parameters are those of the papers") {
  const std::int64_t d = 240;
  const std::int64_t lstm = 8 * d * d + 4 * d + 2 * d;  // with the first states
  const std::int64_t attention = 3 * d * d + d + d;     // W_d, W_q, B; b, w
  const std::int64_t readout = 3 * d * d + d;           // W_c, W_g, W_m; b_g
  CHECK(count_of({}, d) == 2 * lstm + attention + readout);
  // In both directions what attention and readout take of the LSTMs is twice as wide.
  CHECK(count_of({"model.bidirectional=true"}, d) ==
        4 * lstm + (2 + 2 + 4) * d * d + 2 * d + 6 * d * d + d);
}

TEST_CASE("attentive_reader: noise on the first states is of training alone") {
  const auto losses = [](const char* noise) {
    const train::Job job = job_with({std::string("model.start_noise=") + noise});
    const auto rows = job.splits().stream(task::Split::kValid, train::evaluation_options(job));
    reference::ReferenceBackend backend;
    Variables variables(backend, 1);
    train::Evaluator evaluator(backend, variables, job);
    const double evaluated = evaluator.run(*rows).loss;
    return std::pair{Run(job, batch_of(job, {48, 8}, Behind::kRepeated)).loss, evaluated};
  };
  const auto [plain, plain_evaluated] = losses("0");
  const auto [noisy, noisy_evaluated] = losses("0.5");
  CHECK(noisy != plain);
  CHECK(noisy_evaluated == plain_evaluated);
}

TEST_CASE("attentive_reader: refusals") {
  const auto refused = [](const char* setting, std::string_view part) {
    test::check_refused([&] { job_with({setting}); }, "model.", part);
  };
  refused("model.sites=cell", "sites: expected lstm or everywhere, got 'cell'");
  refused("model.norm=layernrm", "nearest: 'layernorm'");
  refused("model.input_norm=layernrm", "nearest: 'layernorm'");
  refused("model.norm_of=all", "norm_of: expected products or sum, got 'all'");
  test::check_refused(
      [] {
        job_with({"model.norm_of=sum", "model.input_norm=sequencebatchnorm"});
      },
      "model.", "input_norm: expected none where norm_of is sum, got 'sequencebatchnorm'");
  refused("model.dropout=1", "dropout: expected in [0, 1), got 1");
  refused("model.babi_task=21", "babi_task: expected 0 to 20, got 21");
  refused("model.corpus=cnn", "corpus: expected questions, babi or lambada, got 'cnn'");
  refused("model.longest=0", "longest: expected 1 to 10000, got 0");
}

}  // namespace
}  // namespace keel::models
