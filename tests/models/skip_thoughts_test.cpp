// Skip-thoughts: parameters, vectors, gradients.
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

#include "models/skip_thoughts/model.h"
#include "models/skip_thoughts/vectors.h"
#include "tests/models/helpers.h"
#include "tests/models/sentence_vectors.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

train::Job job_with() { return small_job({}, "skip_thoughts"); }

std::set<std::string> parameters_of(const train::Job& job) {
  Graph g;
  nn::Net net{.graph = g};
  job.network().build(net, train::add_inputs(g, job.network(), {2, 4, 8}));
  const std::vector<std::string> names = names_of(g, NodeKind::kParameter);
  return {names.begin(), names.end()};
}

TEST_CASE("skip_thoughts: an encoder, two decoders, and one way to say words") {
  const std::set<std::string> names = parameters_of(job_with());
  for (const char* gru : {"encoder", "before", "after"}) {
    for (const char* part : {"gates", "candidate"}) {
      for (const char* product : {"input", "recurrent"}) {
        const std::string layer = fmt::format("{}/{}/{}", gru, part, product);
        CHECK(names.contains(layer + "/weight"));
        CHECK(names.contains(layer + "/norm/gain"));
      }
    }
  }
  CHECK(names.size() == 3 * 4 * 3 + 3);  // words/table, logits/weight, logits/bias
}

TEST_CASE("skip_thoughts: a vector depends on its sentence alone, and has the length 1") {
  const train::Job job = job_with();
  const std::vector<std::string> lines{"word1 word2", "word1 word2 word3 word1 word1",
                                       "word1 word2", ""};
  const std::vector<std::string> together = vectors_of(job, lines);
  REQUIRE(together.size() == 4);
  CHECK(together[0] == together[2]);
  CHECK(together[0] != together[1]);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(vectors_of(job, {lines[i]}).front() == together[i]);
    std::istringstream numbers(together[i]);
    double squares = 0;
    int count = 0;
    for (double x; numbers >> x; ++count) squares += x * x;
    CHECK(count == 48);
    CHECK(squares == doctest::Approx(1).epsilon(1e-5));
  }
  CHECK(vectors_of(job, {}).empty());
}

// The summed loss of the first rows once the words that one decoder reads are all the same.
double loss_with(const train::Job& job, const std::string& changed) {
  const auto stream = job.splits().stream(task::Split::kTrain, {.batch = 4096, .shuffle = {}});
  const task::Batch& batch = stream->pick(first_rows(4));
  Graph g;
  nn::Net net{.graph = g};
  g.mark_output(
      "loss", job.network().build(net, train::add_inputs(g, job.network(), batch.sizes)).loss_sum);
  const auto backend = make_backend("reference");
  Variables variables(*backend, 1);
  Program program(*backend, variables, g);
  train::Feeder(job.network()).feed(program, batch);
  for (const task::Input& input : job.network().inputs(batch.sizes)) {
    if (input.name != changed) continue;
    Tensor words(input.type);
    std::ranges::fill(words.as<std::int32_t>(), text::Dictionary::kUnk);
    program.feed(changed, words);
  }
  program.run();
  return program.scalar("loss");
}

TEST_CASE("skip_thoughts: a summed loss is the mean one, times the words of the batch") {
  const train::Job mean = job_with(), sum = small_job({"model.summed_loss=true"}, "skip_thoughts");
  const auto stream = mean.splits().stream(task::Split::kTrain, {.batch = 4096, .shuffle = {}});
  const double words = stream->pick(first_rows(4)).items;
  CHECK(words > 8);
  CHECK(loss_with(sum, "none") == doctest::Approx(words * loss_with(mean, "none")).epsilon(1e-6));
}

// Kiros et al. 2015, eq. 5 to 7: the input weight has rows for h, and these see it at every step.
TEST_CASE("skip_thoughts: a conditioned decoder has the vector at every step") {
  const auto input_rows = [](const std::string& condition, const std::string& gru) {
    const train::Job job = small_job({"model.condition=" + condition}, "skip_thoughts");
    Graph g;
    nn::Net net{.graph = g};
    job.network().build(net, train::add_inputs(g, job.network(), {2, 4, 8}));
    return g.shape(g.find_leaf(gru + "/gates/input/weight"))[0];
  };
  const std::int64_t words = input_rows("first", "encoder");
  CHECK(input_rows("every_step", "encoder") == words);
  for (const std::string gru : {"before", "after"}) {
    CHECK(input_rows("first", gru) == words);
    CHECK(input_rows("every_step", gru) == words + 48);
  }
  CHECK(vectors_of(small_job({"model.condition=every_step"}, "skip_thoughts"), {"word1"}).size() ==
        1);
}

TEST_CASE("skip_thoughts: each decoder reads the neighbour that it is to say") {
  const train::Job job = job_with();
  const double loss = loss_with(job, "none");
  CHECK(loss_with(job, "before_in") != doctest::Approx(loss).epsilon(1e-9));
  CHECK(loss_with(job, "after_in") != doctest::Approx(loss).epsilon(1e-9));
}

TEST_CASE("skip_thoughts: the gradient of the whole network by central differences" *
          doctest::test_suite("slow")) {
  for (const char* norm : {"none", "layernorm"}) {
    CAPTURE(norm);
    check_gradients(
        small_job({std::string("model.norm=") + norm, "model.width=6"}, "skip_thoughts"), 3);
  }
  check_gradients(small_job({"model.condition=every_step", "model.width=6"}, "skip_thoughts"), 3);
}

TEST_CASE("skip_thoughts: options that cannot be are refused") {
  for (const auto& [setting, part] :
       {std::pair{"model.width=0", "model.width: expected 1 to 65536, got 0"},
        {"model.symbols=4", "model.symbols: expected 5 to 10000000, got 4"},
        {"model.most_words=61", "model.most_words: expected 1 to 60, got 61"},
        {"model.norm=layernorms", "layernorm"},
        {"model.condition=never", "first or every_step"}}) {
    CAPTURE(setting);
    test::check_refused([&] { small_job({setting}, "skip_thoughts"); }, "model.", part);
  }
}

}  // namespace
}  // namespace keel::models
