// Searches at their limits: equal scores, symbols that no text has, groups of any size, and scores
// that are no numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/models/translation_runs.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

// Every symbol is as likely as any other: what comes is <unk>, the first symbol that may, and then
// the end, which stands before it.
TEST_CASE("translation search: among equals the documented one, alone and after another sentence") {
  TranslationRun run({"model.dropout=0", "model.beam=2"});
  run.translate({"s1"});
  Tensor table = run.variables.read("target/table");
  std::ranges::fill(table.as<float>(), 0.0f);
  run.variables.write("target/table", table);
  CHECK(run.translate({"s1 s2 s3"}) == Lines{"<unk>"});
  CHECK(run.translate({"s4", "s1 s2 s3", "s5 s6 s7"}) == Lines(3, "<unk>"));
}

TEST_CASE("translation search: neither the beginning nor a filler is ever said") {
  TranslationRun run({"model.dropout=0", "model.beam=50", "model.longest=4"});
  run.translate({"s1"});
  const text::Dictionary dictionary = run.data.subwords.target->dictionary();
  REQUIRE(dictionary.first_filler() < dictionary.size());
  // Far from all other symbols, they are likelier or less likely than all; a beam as wide as the
  // vocabulary looks at both ends.
  Tensor table = run.variables.read("target/table");
  const std::int64_t width = table.shape()[1];
  const auto make_likely = [&](std::int32_t id) {
    for (std::int64_t i = 0; i < width; ++i) {
      table.as<float>()[std::size_t(id * width + i)] = i % 2 ? 3.0f : -2.0f;
    }
  };
  make_likely(text::Dictionary::kBegin);
  for (std::int32_t id = dictionary.first_filler(); id < dictionary.size(); ++id) make_likely(id);
  run.variables.write("target/table", table);
  for (const bool recompute : {false, true}) {
    SearchOptions options{.beam = {.beam = 50, .longest = 4}, .recompute = recompute};
    const Ranked found = run.search({"s1 s2"}, options);
    CHECK(found[0].size() == 50);
    for (const task::RankedAnswer& answer : found[0]) CHECK_FALSE(answer.text.empty());
  }
}

TEST_CASE("translation search: however many are searched at a time, the answers are the same") {
  TranslationRun run({"model.dropout=0"});
  run.learn(8, 40);
  const Lines lines = run.sources(50);
  SearchOptions options{.beam = {.beam = 3, .longest = 25}};
  const Ranked all = run.search(lines, options);
  for (const std::int64_t sentences : {1, 7, 32}) {
    CAPTURE(sentences);
    options.most_rows = 3 * sentences;
    const Ranked groups = run.search(lines, options);
    REQUIRE(groups.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      REQUIRE(groups[i].size() == all[i].size());
      for (std::size_t k = 0; k < all[i].size(); ++k) {
        CHECK(groups[i][k].text == all[i][k].text);
        CHECK(groups[i][k].score == doctest::Approx(all[i][k].score).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("translation search: a weight that is no number is said, not searched with") {
  TranslationRun run({"model.beam=2"});
  run.translate({"s1"});
  const std::string name = "decoder1/feed_forward/2/bias";
  Tensor bias = run.variables.read(name);
  bias.as<float>()[3] = std::nanf("");
  run.variables.write(name, bias);
  test::check_refused([&] { run.translate({"s1 s2"}); }, "[translation] sentence 1, symbol 1",
                      "got nan", ErrorKind::kDiverged);
}

}  // namespace
}  // namespace keel::models
