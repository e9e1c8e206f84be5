// Word language models: parameters, what words may read, segments of any length, the softmax, and
// the text that they write.
#include <doctest/doctest.h>

#include <cmath>

#include "frontend/train/evaluator.h"
#include "models/word_lm/model.h"
#include "tests/models/helpers.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

using test::check_refused;

train::Job job_with(const Settings& settings = {}) { return small_job(settings, "word_lm"); }

std::set<std::string> parameters_of(const train::Job& job) {
  Graph g;
  nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate};
  job.network().build(net, train::add_inputs(g, job.network(), {2, 6}));
  const std::vector<std::string> names = names_of(g, NodeKind::kParameter);
  return {names.begin(), names.end()};
}

TEST_CASE("word_lm: one table for words in and out, biases shared by all layers") {
  const std::set<std::string> names = parameters_of(job_with({"model.layers=2"}));
  for (const char* name :
       {"words", "logits/bias", "attention_biases/content", "attention_biases/position",
        "layer1/attention/q/weight", "layer2/attention/k/weight", "layer1/attention/v/weight",
        "layer1/attention/positions/weight", "layer2/attention/core", "layer1/attention/out",
        "layer1/attention/norm/gain", "layer2/feed_forward/norm/bias", "layer1/feed_forward/1/bias",
        "layer2/feed_forward/2/weight"}) {
    CAPTURE(name);
    CHECK(names.contains(name));
  }
  // In a layer 6 of attention, 4 of feed-forward and 4 of norms.
  CHECK(names.size() == 4 + 2 * 14);
}

TEST_CASE("word_lm: adaptive softmax, a final norm and plain attention have their parameters") {
  CHECK(parameters_of(job_with({"model.cutoffs=5,9"})).contains("clusters/weight"));
  CHECK(parameters_of(job_with({"model.final_norm=true"})).contains("norm/gain"));
  CHECK(!parameters_of(job_with({"model.final_norm=true", "model.place=post"}))
             .contains("norm/gain"));
  const std::set<std::string> plain = parameters_of(job_with({"model.attention=softmax"}));
  CHECK(plain.contains("layer1/attention/out/bias"));
  CHECK(!plain.contains("attention_biases/content"));
}

TEST_CASE("word_lm: every placement trains, with the attention that it takes" *
          doctest::test_suite("slow")) {
  const auto check_learns = [](const Settings& settings) {
    const LossChange loss = train_rows(job_with(settings), 8, 30);
    CHECK(loss.last < loss.first);
  };
  for (std::size_t i = 0; i < nn::kPlacements.size(); ++i) {
    const nn::PlacementFacts& facts = nn::kPlacements[i];
    CAPTURE(std::string(facts.name));
    const std::string place = fmt::format("model.place={}", facts.name);
    const Settings softmax{place, "model.attention=softmax", "model.final_norm=true",
                           "model.layers=2", "model.dropout=0"};
    CHECK(parameters_of(job_with(softmax)).contains("norm/gain") == facts.final_norm);
    check_learns(softmax);
    if (nn::changes_attention(nn::NormPlace(i))) {
      check_refused([&] { job_with({place}); }, "model.attention: expected softmax with place");
    } else {
      check_learns({place, "model.layers=2", "model.dropout=0"});
    }
  }
}

TEST_CASE("word_lm: gains begin around 1 as far as asked for") {
  const auto backend = make_backend(default_backend());
  const auto gains = [&](const Settings& settings) {
    const train::Job job = job_with(settings);
    Variables variables(*backend, 1);
    train::Evaluator(*backend, variables, job).declare();
    return variables.read("layer1/attention/norm/gain");
  };
  const Tensor plain = gains({});
  for (const float gain : plain.as<float>()) CHECK(gain == 1);
  const Tensor drawn = gains({"model.gain_deviation=0.02"});
  double squares = 0;
  for (const float gain : drawn.as<float>()) squares += (gain - 1.0) * (gain - 1.0);
  const double deviation = std::sqrt(squares / double(drawn.elements()));
  CHECK(deviation > 0.005);
  CHECK(deviation < 0.04);
}

TEST_CASE("word_lm: PTB's release has 6.7 million parameters") {
  WordLmOptions options;
  text::WordCounts counts{{"<unk>", 1}};
  for (int i = 0; i < 9999; ++i) counts.emplace(fmt::format("w{}", i), 1);
  const WordLmNetwork network(options, text::Vocabulary(counts, {}));
  Graph g;
  nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate};
  network.build(net, train::add_inputs(g, network, network.sizes(120)));
  // words and their biases; u and w; of a layer q, k, v and positions, the core, out, feed-forward
  // and two norms
  const std::int64_t layer = 4 * 256 * 40 + 40 + 1024 * 256 + 2 * 256 * 2100 + 2100 + 256 + 4 * 256;
  CHECK(count_parameters(g) == 10000 * 256 + 10000 + 2 * 40 + 3 * layer);
}

// log p of every word after each of these words, with the weights of a seed.
Tensor logits_of(const train::Job& job, const std::vector<std::int32_t>& words) {
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  const std::int64_t length = std::ssize(words);
  const Shape shape{1, length};
  Tensor logits(DType::kF32, {length, 0});
  std::vector<float> values;
  for (std::int64_t place = 0; place < length; ++place) {
    Graph g;
    nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate};
    const task::Sizes sizes{1, length};
    std::vector<NamedValue> in;
    for (const task::Input& input : job.network().search_inputs(kNextWord, sizes)) {
      in.push_back({input.name, g.input(input.name, input.type)});
    }
    g.mark_output("logits",
                  job.network().build_search(net, kNextWord, sizes, task::Inputs(in))[0].value);
    Program program(*backend, variables, std::move(g));
    program.feed("input", Tensor::of<std::int32_t>(shape, words));
    program.feed("last", Tensor::of<std::int32_t>({1}, {std::int32_t(place)}));
    program.run();
    const Tensor found = program.fetch("logits");
    for (const float value : found.as<float>()) values.push_back(value);
  }
  return Tensor::of<float>({length, std::int64_t(values.size()) / length}, values);
}

// The places at which the logits change by a bit when the words from `from` on do.
std::vector<bool> changed_places(const train::Job& job, std::size_t from) {
  std::vector<std::int32_t> words{1, 2, 3, 4, 5, 6};
  const Tensor before = logits_of(job, words);
  for (std::size_t i = from; i < words.size(); ++i) words[i] += 7;
  const Tensor after = logits_of(job, words);
  std::vector<bool> changed(words.size(), false);
  for (std::int64_t e = 0; e < before.elements(); ++e) {
    const bool is_same = before.at(e) == after.at(e);
    if (!is_same) changed[std::size_t(e / before.shape()[1])] = true;
  }
  return changed;
}

TEST_CASE("word_lm: later words change no earlier logit by a bit" * doctest::test_suite("slow")) {
  for (const char* attention : {"multilinear", "softmax"}) {
    for (const char* norm : {"layernorm", "batchnorm", "powernorm", "groupnorm{groups=4}"}) {
      for (const char* cutoffs : {"", "8,15"}) {
        CAPTURE(attention);
        CAPTURE(norm);
        const train::Job job =
            job_with({std::string("model.attention=") + attention,
                      std::string("model.norm=") + norm, std::string("model.cutoffs=") + cutoffs,
                      "model.layers=2", "model.scaling=layerscaling"});
        CHECK(changed_places(job, 4) == std::vector{false, false, false, false, true, true});
      }
    }
  }
}

TEST_CASE("word_lm: without the mask the first word reads the last, and nothing is called ppl") {
  for (const char* attention : {"multilinear", "softmax"}) {
    const train::Job job =
        job_with({"model.mask=none", std::string("model.attention=") + attention});
    CHECK(changed_places(job, 5) == std::vector<bool>(6, true));
    REQUIRE(job.task().metrics().size() == 1);
    CHECK(job.task().metrics()[0].name == "ppl_of_leak");
  }
  CHECK(job_with().task().metrics()[0].name == "ppl");
}

TEST_CASE("word_lm: a short segment is what a long one begins with") {
  for (const char* attention : {"multilinear", "softmax"}) {
    const train::Job job = job_with({std::string("model.attention=") + attention});
    const Tensor all = logits_of(job, {3, 1, 4, 1, 5, 9}), some = logits_of(job, {3, 1, 4, 1});
    for (std::int64_t e = 0; e < some.elements(); ++e) {
      REQUIRE(some.at(e) == doctest::Approx(all.at(e)).epsilon(1e-5));
    }
  }
}

TEST_CASE("word_lm: the loss is that of the logits that the writer reads") {
  for (const char* cutoffs : {"", "4", "6,13"}) {
    CAPTURE(cutoffs);
    const train::Job job = job_with({std::string("model.cutoffs=") + cutoffs});
    const auto backend = make_backend(default_backend());
    Variables variables(*backend, 1);
    const auto stream = job.splits().stream(task::Split::kTest, {.batch = 1, .shuffle = {}});
    const task::Batch& batch = stream->at(0, 1);  // the last segment, alone in its batch
    REQUIRE(batch.sizes == task::Sizes{1, 5});
    const auto words = batch.values[0].as<std::int32_t>();
    const Tensor logits = logits_of(job, {words.begin(), words.end()});
    const std::int64_t count = logits.shape()[1];
    double nll = 0;
    for (std::int64_t place = 0; place < logits.shape()[0]; ++place) {
      double sum = 0;
      for (std::int64_t w = 0; w < count; ++w) sum += std::exp(logits.at(place * count + w));
      nll += std::log(sum) -
             logits.at(place * count + batch.values[1].as<std::int32_t>()[std::size_t(place)]);
    }
    Graph g;
    nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate};
    g.mark_output(
        "loss",
        job.network().build(net, train::add_inputs(g, job.network(), batch.sizes)).loss_sum);
    Program program(*backend, variables, std::move(g));
    train::Feeder(job.network()).feed(program, batch);
    program.run();
    CHECK(program.scalar("loss") == doctest::Approx(nll).epsilon(1e-5));
  }
}

TEST_CASE("word_lm: every word of a file but the first is scored") {
  const train::Job job = job_with();
  const auto backend = make_backend("reference");
  Variables variables(*backend, 3);
  train::Evaluator evaluator(*backend, variables, job);
  const auto stream = job.splits().stream(task::Split::kTest, {.batch = 7, .shuffle = {}});
  CHECK(evaluator.run(*stream).items == 13 * 6 - 1);
}

TEST_CASE("word_lm: a text is evaluated in batches of segments, and a short one as well") {
  const train::Job job = job_with();
  const auto stream = job.splits().stream(task::Split::kTest, {.batch = 7, .shuffle = {}});
  // 77 predictions in segments of 6, of which 16 would fit into a batch.
  CHECK(stream->shapes() == std::vector<task::Sizes>{{12, 6}, {1, 5}});
  CHECK(stream->steps(0) == 2);
}

TEST_CASE("word_lm: the log-probabilities of a text's words add up to its loss") {
  for (const char* more :
       {"model.cutoffs=", "model.cutoffs=6,13", "model.attention=softmax", "model.mask=none"}) {
    CAPTURE(more);
    const train::Job job = job_with({more, "model.label_smoothing=0.1"});
    const auto backend = make_backend(default_backend());
    Variables variables(*backend, 3);
    train::Evaluator evaluator(*backend, variables, job);
    evaluator.declare();
    const auto stream = job.splits().stream(task::Split::kTest, {.batch = 1, .shuffle = {}});
    const double nll = evaluator.run(*stream).loss * (13 * 6 - 1);
    // The test text again, from the numbers of its words.
    const auto& network = dynamic_cast<const WordLmNetwork&>(job.network());
    std::vector<std::string> lines(1);
    const auto add = [&](std::int32_t number) {
      const std::string& word = network.vocabulary().word(number + text::Vocabulary::kUnk);
      if (word == kEndOfLine) {
        lines.emplace_back();
      } else {
        lines.back() += (lines.back().empty() ? "" : " ") + word;
      }
    };
    bool begins = true;
    for (std::int64_t step = 0; step < stream->steps(0); ++step) {
      const task::Batch& batch = stream->at(0, step);
      if (std::exchange(begins, false)) add(batch.values[0].as<std::int32_t>()[0]);
      for (const std::int32_t target : batch.values[1].as<std::int32_t>()) add(target);
    }
    lines.pop_back();
    const auto scorer = job.network().decoder(lines, 1);
    evaluator.decode(*scorer, [] { return false; });
    const std::vector<std::string> answers = scorer->answers();
    REQUIRE(answers.size() == lines.size());
    CHECK(answers[0].starts_with("- "));
    double sum = 0;
    for (std::size_t line = 0; line < lines.size(); ++line) {
      const auto values = text::words_of(answers[line]);
      CHECK(values.size() == text::words_of(lines[line]).size() + 1);
      double of_line = 0;
      for (const std::string_view value : values) {
        if (value != "-") of_line += std::stod(std::string(value));
      }
      const task::RankedAnswer ranked = scorer->ranked(1).at(line).at(0);
      CHECK(ranked.text == lines[line]);
      CHECK(ranked.log_probability == doctest::Approx(of_line).epsilon(1e-5));
      const auto scored = std::ssize(values) - std::ranges::count(values, "-");
      CHECK(ranked.score == doctest::Approx(of_line / double(scored)).epsilon(1e-5));
      sum += of_line;
    }
    CHECK(-sum == doctest::Approx(nll).epsilon(1e-5));
  }
}

TEST_CASE("word_lm: gradients of every parameter" * doctest::test_suite("slow")) {
  check_gradients(job_with({"model.dropout=0"}), 4);
  check_gradients(job_with({"model.dropout=0", "model.cutoffs=8", "model.cores=2",
                            "model.label_smoothing=0.1"}),
                  4);
}

TEST_CASE("word_lm: label smoothing is of training alone") {
  const train::Job plain = job_with({"model.dropout=0"});
  const train::Job smoothed = job_with({"model.dropout=0", "model.label_smoothing=0.3"});
  const auto backend = make_backend("reference");
  const auto loss = [&](const train::Job& job) {
    Variables variables(*backend, 3);
    train::Evaluator evaluator(*backend, variables, job);
    return evaluator.run(*job.splits().stream(task::Split::kTest, {.batch = 1, .shuffle = {}}))
        .loss;
  };
  CHECK(loss(plain) == loss(smoothed));
}

TEST_CASE("word_lm: refusals of options") {
  const auto refuses = [](const char* setting, std::string_view part) {
    check_refused([&] { job_with({setting}); }, "model.", part);
  };
  refuses("model.cutoffs=9,5", "expected ascending numbers with commas, got '9,5'");
  refuses("model.cutoffs=5,", "expected ascending numbers with commas, got '5,'");
  refuses("model.cutoffs=5,900", "expected numbers below the 25 words, got 5,900");
  refuses("model.norm=instancenorm", "does not take statistics over a segment");
  refuses("model.scaling=batchnorm", "expected layerscaling or groupscaling, got 'batchnorm'");
  refuses("model.width=33", "expected an even number");
  refuses("model.length=513", "length: expected at most 512 with multilinear attention");
}

std::string written_by(const train::Job& job, const task::Continuation& asked) {
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  train::Evaluator evaluator(*backend, variables, job);
  evaluator.declare();
  const auto writer = job.network().continuation(asked);
  evaluator.decode(*writer, [] { return false; });
  return writer->answers()[0];
}

TEST_CASE("word_lm: writes as many words as asked for, the same by the same seed") {
  const train::Job job = job_with();
  const task::Continuation asked{.prompt = "w1 w2", .tokens = 20, .sample = {.seed = 5}};
  const std::string text = written_by(job, asked);
  std::int64_t words = std::ranges::count(text, '\n');
  text::Lines lines(text);
  while (const auto line = lines.next()) words += std::ssize(text::words_of(line->text));
  CHECK(words == 20);
  CHECK(written_by(job, asked) == text);
  task::Continuation other = asked;
  other.sample.seed = 6;
  CHECK(written_by(job, other) != text);
  CHECK(written_by(job, {.prompt = "w1", .tokens = 0}).empty());
}

TEST_CASE("word_lm: a prompt has words of the run") {
  const train::Job job = job_with();
  const auto refuses = [&](const char* prompt, std::string_view part) {
    check_refused([&] { job.network().continuation({.prompt = prompt}); }, "prompt", part,
                  ErrorKind::kBadInput);
  };
  refuses("w1 nonsense", "got 'nonsense'");
  refuses("", "expected at least one word");
  refuses(" ", "expected at least one word");
  CHECK_NOTHROW(job.network().continuation({.prompt = "w1 <unk>"}));
}

TEST_CASE("word_lm: the network reads an end for every end of a line in the prompt") {
  const text::Vocabulary words({{"<eos>", 3}, {"a", 2}, {"b", 1}}, {});
  const auto read = [&](const char* prompt) {
    WindowWriter writer(words, 6, {.prompt = prompt, .tokens = 1});
    const task::Batch& batch = *writer.next();
    const auto window = batch.values[0].as<std::int32_t>();
    return std::vector<std::int32_t>(window.begin(),
                                     window.begin() + batch.values[1].as<std::int32_t>()[0] + 1);
  };
  CHECK(read("a b") == std::vector<std::int32_t>{2, 3});
  CHECK(read("a b\n") == std::vector<std::int32_t>{2, 3, 1});
  CHECK(read("a\n\nb") == std::vector<std::int32_t>{2, 1, 1, 3});
  CHECK(read("a\n\n") == std::vector<std::int32_t>{2, 1, 1});
  CHECK(read("\n") == std::vector<std::int32_t>{1});
}

}  // namespace
}  // namespace keel::models
