// The search that keeps keys and values against the one that computes every position again, and
// against sums by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "frontend/train/run_state.h"
#include "models/translation/pair_batch.h"
#include "models/translation/search_network.h"
#include "tests/models/translation_runs.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

using text::Dictionary;

// The same answers with the same bits of their scores.
void check_equal(const Ranked& got, const Ranked& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    REQUIRE(got[i].size() == expected[i].size());
    for (std::size_t k = 0; k < got[i].size(); ++k) {
      CAPTURE(k);
      CHECK(got[i][k].text == expected[i][k].text);
      CHECK(got[i][k].score == expected[i][k].score);
      CHECK(got[i][k].log_probability == expected[i][k].log_probability);
    }
  }
}

// Sides of unlike lengths, an unknown word, an empty line and a line of only spaces.
Lines mixed_lines(const TranslationRun& run) {
  Lines lines = run.sources(6);
  lines.insert(lines.begin() + 2, {"", "s1 never-seen s3", "   ", "s5"});
  lines.push_back("s1 s2 s3 s4 s5 s6 s7 s8 s9 s1 s2 s3 s4 s5 s6 s7 s8 s9 s10");
  return lines;
}

std::vector<std::string> backends_here() {
  std::set<std::string> names{"reference", default_backend()};
  for (const BackendEntry& entry : known_backends()) {
    if (entry.name == "cuda" && entry.missing.empty()) names.insert(entry.name);
  }
  return {names.begin(), names.end()};
}

TEST_CASE("translation search: chunks of positions double, and cover a room") {
  CHECK(chunk_begin(0) == 0);
  CHECK(chunk_begin(1) == 16);
  CHECK(chunk_begin(2) == 32);
  CHECK(chunk_begin(3) == 64);
  for (std::int64_t position = 0; position < 300; ++position) {
    CAPTURE(position);
    const std::int64_t chunk = chunk_of(position);
    CHECK(chunk_begin(chunk) <= position);
    CHECK(position < chunk_begin(chunk + 1));
    CHECK(room_for(position) == chunk_begin(chunk + 1));
  }
}

TEST_CASE("translation search: what is kept gives the bits of what is computed anew" *
          doctest::test_suite("slow")) {
  for (const std::string& backend : backends_here()) {
    CAPTURE(backend);
    TranslationRun run({"model.layers=2", "model.dropout=0"}, backend);
    const bool is_fast = backend == "onednn";
    // Few steps: several hypotheses stay likely, and change places.
    run.learn(8, is_fast ? 40 : 15);
    const Lines lines = mixed_lines(run);
    for (const std::int64_t beam : {1, 4}) {
      CAPTURE(beam);
      SearchOptions options{.beam = {.beam = beam, .longest = is_fast ? 40 : 18},
                            .most_rows = is_fast ? 256 : 8};
      const Ranked kept = run.search(lines, options);
      options.recompute = true;
      check_equal(kept, run.search(lines, options));
    }
  }
}

TEST_CASE("translation search: parts of it find together, to the bit, what one search finds") {
  TranslationRun run({"model.dropout=0"});
  run.learn(8, 15);
  const Lines lines = mixed_lines(run);
  // Groups of one or two sentences.
  const SearchOptions options{.beam = {.beam = 3, .longest = 20}, .most_rows = 6};
  const Ranked whole = run.search(lines, options);
  train::Evaluator evaluator(*run.backend, run.variables, run.job);
  for (const std::int64_t parts : {2, 3, 7, 40}) {
    CAPTURE(parts);
    std::vector<std::unique_ptr<Translator>> searches;
    for (std::int64_t part = 0; part < parts; ++part) {
      searches.push_back(
          std::make_unique<Translator>(TranslationTask{run.data.subwords, lines}, options));
      REQUIRE(searches.back()->take_part(part, parts));
      evaluator.decode(*searches.back());
    }
    CHECK(searches[0]->answers() != searches[1]->answers());
    for (const auto& other : searches) {
      for (const task::FoundAnswers& of : other->found()) searches[1]->take_found(of);
    }
    check_equal(searches[1]->ranked(3), whole);
  }
}

TEST_CASE("translation search: of every norm and place, what is kept is what is computed anew" *
          doctest::test_suite("slow")) {
  for (const Settings& settings : {Settings{"model.norm=powernorm"},
                                   {"model.norm=batchnorm"},
                                   {"model.norm=none"},
                                   {"model.norm=pn_v", "model.sites=encoder"},
                                   {"model.norm=mabn"},
                                   {"model.norm=sequencebatchnorm"},
                                   {"model.norm=groupnorm{groups=4}", "model.place=post"},
                                   {"model.place=peri", "model.norm=batchnorm"},
                                   {"model.place=sub", "model.norm=powernorm"},
                                   {"model.place=hybrid", "model.layers=2"},
                                   {"model.place=hybrid", "model.norm=batchnorm"},
                                   {"model.place=lns", "model.layers=2"},
                                   {"model.place=scaled_post"},
                                   {"model.embeddings=none", "model.init=kaiming"}}) {
    CAPTURE(settings[0]);
    TranslationRun run(settings);
    run.learn(8, 5);
    const Lines lines = run.sources(5);
    SearchOptions options{.beam = {.beam = 3, .longest = 20}};
    const Ranked kept = run.search(lines, options);
    options.recompute = true;
    check_equal(kept, run.search(lines, options));
  }
}

TEST_CASE("translation search: a norm over a sentence's positions is computed anew") {
  TranslationRun run({"model.norm=instancenorm", "model.longest=12"});
  run.learn(8, 5);
  const Lines lines = run.sources(5);
  const Ranked anew = run.search(
      lines, {.beam = {.beam = 2, .length_penalty = 1, .longest = 12}, .recompute = true});
  const Lines answers = run.translate(lines);
  for (std::size_t i = 0; i < lines.size(); ++i) CHECK(answers[i] == anew[i][0].text);
}

struct Greedy {
  std::vector<std::int32_t> said = {};
  double log_probability = 0;  // of all that was said, and of the end
};

// Goes on with the likeliest symbol that may come, by networks that see the whole beginning.
Greedy greedy(TranslationRun& run, const std::vector<std::int32_t>& source, std::int64_t longest) {
  const std::int32_t first_filler = run.data.subwords.target->dictionary().first_filler();
  Greedy result;
  while (true) {
    std::vector<std::int32_t>& said = result.said;
    NumberedPair pair{source, said};
    pair.target.push_back(Dictionary::kEnd);
    task::Batch batch;
    const task::Sizes sizes{1, std::ssize(source), std::ssize(pair.target)};
    data::clear_batch(batch, sizes, pair_inputs(sizes));
    put_pair(batch, 0, pair);
    batch.values[kAsked].as<std::int32_t>()[0] = static_cast<std::int32_t>(said.size());
    Program program(*run.backend, run.variables, train::build_evaluate(run.job, batch.sizes));
    train::Feeder(run.job.network()).feed(program, batch);
    program.feed("weight", Tensor::scalar(1.0f));
    program.run();
    const Tensor symbols = program.fetch("prediction/symbols"),
                 scores = program.fetch("prediction/scores");
    const double end = program.fetch("prediction/end").at(0);
    const auto may_come = [&](std::int32_t symbol) {
      return symbol == Dictionary::kEnd ? !said.empty()
                                        : symbol >= Dictionary::kUnk && symbol < first_filler;
    };
    std::int64_t best = 0;
    while (!may_come(symbols.as<std::int32_t>()[std::size_t(best)])) ++best;
    const std::int32_t symbol = symbols.as<std::int32_t>()[std::size_t(best)];
    const bool ends = symbol == Dictionary::kEnd || std::ssize(said) == longest;
    result.log_probability += ends ? end : scores.at(best);
    if (ends) return result;
    said.push_back(symbol);
  }
}

TEST_CASE("translation search: a beam of one is greedy") {
  TranslationRun run({"model.dropout=0"});
  run.learn(8, 60);
  const Lines lines = run.sources(8);
  const Ranked found = run.search(lines, {.beam = {.beam = 1, .longest = 25}});
  const TranslationSubwords subwords = run.data.subwords;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Greedy expected = greedy(run, subwords.source->encode(lines[i], "a test"), 25);
    CHECK(found[i][0].text == subwords.target->decode(expected.said));
    CHECK(found[i][0].log_probability == doctest::Approx(expected.log_probability).epsilon(1e-5));
  }
}

TEST_CASE(
    "translation search: a sentence has the same answers alone, among others and turned round" *
    doctest::test_suite("slow")) {
  TranslationRun run({"model.dropout=0"});
  run.learn(8, 40);
  Lines lines = mixed_lines(run);
  std::string long_line = "s1";
  for (int i = 2; i <= 200; ++i) long_line += fmt::format(" s{}", i % 60);
  lines.push_back(long_line);
  const SearchOptions options{.beam = {.beam = 3, .longest = 30}};
  const Ranked together = run.search(lines, options);
  CHECK(together[2].size() == 1);  // an empty line has one answer, an empty one
  CHECK(together[2][0].text.empty());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(i);
    check_equal(run.search({lines[i]}, options), {together[i]});
  }
  Ranked backwards = together;
  std::ranges::reverse(lines);
  std::ranges::reverse(backwards);
  check_equal(run.search(lines, options), backwards);
}

TEST_CASE("translation search: the log probability is that of the symbols one by one") {
  TranslationRun run({"model.dropout=0", "model.label_smoothing=0.3"});
  run.learn(8, 60);
  const Lines lines = run.sources(8);
  const TranslationSubwords subwords = run.data.subwords;
  const Ranked found =
      run.search(lines, {.beam = {.beam = 4, .length_penalty = 0.6, .longest = 25}});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const task::RankedAnswer& answer : found[i]) {
      CAPTURE(answer.text);
      NumberedPair pair{subwords.source->encode(lines[i], "a test"),
                        subwords.target->encode(answer.text, "a test")};
      if (subwords.target->decode(pair.target) != answer.text) continue;  // it said <unk>
      task::Batch batch;
      const task::Sizes sizes{1, std::ssize(pair.source), std::ssize(pair.target)};
      data::clear_batch(batch, sizes, pair_inputs(sizes));
      put_pair(batch, 0, pair);
      Program program(*run.backend, run.variables, train::build_evaluate(run.job, batch.sizes));
      train::Feeder(run.job.network()).feed(program, batch);
      program.feed("weight", Tensor::scalar(1.0f));
      program.run();
      CHECK(answer.log_probability ==
            doctest::Approx(-program.scalar("metric/perplexity/sum")).epsilon(1e-5));
      CHECK(answer.score ==
            doctest::Approx(answer.log_probability / std::pow(double(pair.target.size()), 0.6)));
    }
    CHECK(std::ranges::is_sorted(found[i], std::greater{}, &task::RankedAnswer::score));
  }
}

std::int64_t bytes_of(const Variables& variables) {
  std::int64_t bytes = 0;
  for (const auto& [name, variable] : variables.all()) bytes += variable.memory->bytes();
  return bytes;
}

TEST_CASE("translation search: more sentences take neither more programs nor more memory" *
          doctest::test_suite("slow")) {
  TranslationRun run({"model.beam=2", "model.longest=20"});
  const Lines one = {"s1 s2 s3"};
  Lines many;
  for (int i = 0; i < 700; ++i) many.push_back(fmt::format("s{} s{} s{}", i % 200, i % 7, i % 31));
  train::Evaluator evaluator(*run.backend, run.variables, run.job);
  evaluator.decode(*run.job.network().decoder(one, 1));
  const std::int64_t programs = evaluator.programs(), bytes = evaluator.carried_bytes();
  const std::int64_t parameters = bytes_of(run.variables);
  evaluator.decode(*run.job.network().decoder(many, 1));
  CHECK(evaluator.programs() <= programs + 1);  // of the second chunk
  const std::int64_t grown = evaluator.carried_bytes();
  evaluator.decode(*run.job.network().decoder(many, 1));
  CHECK(evaluator.carried_bytes() == grown);
  CHECK(bytes > 0);
  CHECK(grown <= 2 * bytes);
  CHECK(bytes_of(run.variables) == parameters);
  CHECK(programs >= 2);
}

TEST_CASE("translation search: what is kept is no variable, and is of the weights of now") {
  TranslationRun run({"model.dropout=0"});
  run.learn(8, 30);
  const Lines lines = run.sources(8);
  train::Evaluator evaluator(*run.backend, run.variables, run.job);
  const auto translate = [&] {
    const auto decoder = run.job.network().decoder(lines, 1);
    evaluator.decode(*decoder);
    return decoder->answers();
  };
  const Lines before = translate();
  for (const auto& [name, variable] : run.variables.all()) {
    CHECK_FALSE(name.starts_with("search/"));
  }
  run.learn(8, 60);
  const Lines after = translate();
  CHECK(after != before);
  CHECK(after == run.translate(lines));
}

}  // namespace
}  // namespace keel::models
