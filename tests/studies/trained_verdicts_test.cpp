// Made-up numbers for the studies that train networks: just within their bounds, and just beyond.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "studies/verdicts.h"
#include "tests/studies/verdict_case.h"

namespace keel::study {
namespace {

// All of the values but the first are safe; it is the one that a claim about the worst hangs on.
VerdictCase batch_case() {
  using N = BatchLosses;
  return verdict_case<N>(
      "mini-batchsize",
      {.large_batchnorm = {0.785, 0.8},
       .large_layernorm = {0.88, 0.8},
       .small_none = {0.815, 1},
       .small_batchnorm = {1.11, 1.5},
       .small_layernorm = {0.9, 1}},
      judge_batch_losses,
      {{"batch 128: |loss(layernorm) - loss(batchnorm)|",
        [](N& n) { n.large_layernorm[0] = 0.89; }},
       {"batch 128: |loss(layernorm) - loss(batchnorm)|",
        [](N& n) { n.large_layernorm[1] = 0.69; }},
       {"batch 4: loss(batchnorm)", [](N& n) { n.small_batchnorm[0] = 1.09; }},
       {"batch 4: |loss(layernorm) - loss(none)|", [](N& n) { n.small_none[0] = 0.79; }},
       {"batch 4: |loss(layernorm) - loss(none)|", [](N& n) { n.small_none[1] = 1.11; }}});
}

VerdictCase placement_case() {
  using N = PlacementNumbers;
  return verdict_case<N>("mini-batchsize",
                         {{0.5, 0.5, 0.5}, {0.6, 0.61, 0.59}, {10, 11, 12}, {11, 12, 13.5}},
                         judge_placement,
                         {{"loss(batchnorm after", [](N& n) { n.after_loss[1] = 0.45; }},
                          {"of the test error", [](N& n) { n.after_error[1] = 10; }}});
}

// Two layers, of which the second has no difference.
VerdictCase boundary_case() {
  using N = std::vector<std::vector<UnitParts>>;
  const UnitStatistics inner{0.4, 0.1, 1, 2}, boundary{0.2, 0.5, 0.1, 0.2};
  const std::vector<UnitParts> seed{{boundary, inner}, {inner, inner}};
  const auto each = [](const auto& change) {
    return [change](N& n) {
      for (std::vector<UnitParts>& layers : n) change(layers[1].boundary);
    };
  };
  return verdict_case<N>(
      "boundary-units", {seed, seed, seed},
      [](const N& n, Result& r) { judge_boundary("a", n, r); },
      {{"inner units are on", each([](UnitStatistics& b) { b.on = 0.61; })},
       {"rarely on", each([](UnitStatistics& b) { b.rare = -0.31; })},
       {"log10 of the variance", each([](UnitStatistics& b) { b.variance = 21; })}});
}

VerdictCase detached_case() {
  using N = ValuesByNorm;
  std::vector<Spoil<N>> spoils{
      {"loss(none)", [](N& n) { n["none"][1] = 2.9; }},
      {"loss(detachnorm) - loss(layernorm_simple)", [](N& n) { n["detachnorm"][0] = 0.64; }},
      {"loss(detachvariance) - loss(layernorm_simple)",
       [](N& n) { n["detachvariance"][0] = 0.64; }},
      {"|loss(detachnorm) - loss(detachvariance)|", [](N& n) { n["detachnorm"][1] = 0.78; }},
      {"|loss(detachnorm) - loss(detachvariance)|", [](N& n) { n["detachvariance"][0] = 0.73; }}};
  for (const std::string norm : {"layernorm", "detachmean", "adanorm{C=1,k=0.1}"}) {
    const std::string claim = "|loss(" + norm + ") - loss(layernorm_simple)|";
    spoils.push_back({claim, [norm](N& n) { n[norm][0] = 0.57; }});
    spoils.push_back({claim, [norm](N& n) { n[norm][1] = 0.43; }});
  }
  return verdict_case<N>("mini-layernorm",
                         {{"none", {5, 3.1}},
                          {"layernorm_simple", {0.5, 0.5}},
                          {"layernorm", {0.55, 0.45}},
                          {"detachmean", {0.55, 0.45}},
                          {"adanorm{C=1,k=0.1}", {0.55, 0.45}},
                          {"detachnorm", {0.66, 0.71}},
                          {"detachvariance", {0.66, 0.71}}},
                         judge_detached, spoils);
}

// With 12 blocks detachvariance loses 0.3, with 2 blocks 0.1.
VerdictCase deeper_case() {
  using N = LossesByDepth;
  const SeedValues simple{0.5, 0.51, 0.49};
  return verdict_case<N>("mini-layernorm",
                         {{2,
                           {{"layernorm_simple", {0.8, 0.8, 0.8}},
                            {"detachmean", {0.8, 0.8, 0.8}},
                            {"detachvariance", {0.9, 0.91, 0.89}}}},
                          {12,
                           {{"layernorm_simple", simple},
                            {"detachmean", simple},
                            {"detachvariance", {0.8, 0.8, 0.8}}}}},
                         judge_deeper,
                         {{"12 blocks less 2",
                           [](N& n) {
                             n[2]["detachvariance"] = {1.1, 1.1, 1.1};
                           }},
                          {"12 blocks less 2",
                           [](N& n) {
                             n[2]["layernorm_simple"] = {0.6, 0.6, 0.4};
                           }},
                          {"loss(detachmean), 12 blocks", [](N& n) {
                             n[12]["detachmean"] = {0.79, 0.81, 0.8};
                           }}});
}

VerdictCase trained_signs_case() {
  using N = std::vector<TrainedSigns>;
  return verdict_case<N>("mini-layernorm", {{1000, 0, 0}, {1000, 9.9, 9.8}},
                         [](const N& n, Result& r) { judge_trained_signs(128, 0.1, n, r); },
                         {{"|xhat| >= 1 / k", [](N& n) { n[0].beyond = 10.1; }},
                          {"signs that AdaNorm turns", [](N& n) { n[0].turned = 9.95; }}});
}

SentenceNumbers good_sentences() {
  return {.loss = {{"layernorm", {0.6, 0.6, 0.6}},
                   {"batchnorm", {0.86, 1, 1}},
                   {"pn_v", {1.1, 0.8, 0.94}},
                   {"powernorm paper + ls", {0.67, 0.53, 0.6}},
                   {"powernorm release + ls", {0.67, 0.53, 0.6}},
                   {"powernorm paper", {0.98, 0.9, 1}},
                   {"powernorm release", {0.98, 0.9, 1}}},
          .accuracy = {{"batchnorm", {0.57, 0.68}}, {"pn_v", {0.58, 0.73}}},
          .uneven = {2, 10.1},
          .even = {2, 5.9}};
}

VerdictCase sentence_case() {
  using N = SentenceNumbers;
  std::vector<Spoil<N>> spoils{
      {"loss(batchnorm) - loss(layernorm)",
       [](N& n) {
         n.loss["batchnorm"][0] = 0.84;
         n.loss["batchnorm"][1] = 1.1;
       }},
      {"loss(batchnorm) - loss(pn_v), mean", [](N& n) { n.loss["pn_v"][0] = 1.13; }},
      {"accuracy(pn_v) - accuracy(batchnorm)", [](N& n) { n.accuracy["pn_v"][0] = 0.56; }},
      {"uneven scale", [](N& n) { n.uneven.p99 = 9.9; }},
      {"one scale", [](N& n) { n.even.p99 = 6.1; }}};
  for (const std::string norm : {"powernorm paper", "powernorm release"}) {
    spoils.push_back({"|loss(" + norm + " + ls) - loss(layernorm)|",
                      [=](N& n) { n.loss[norm + " + ls"][1] = 0.51; }});
    spoils.push_back(
        {"loss(" + norm + ") - loss(" + norm + " + ls)", [=](N& n) { n.loss[norm][0] = 0.96; }});
  }
  return verdict_case<N>("mini-powernorm", good_sentences(), judge_sentences, spoils);
}

VerdictCase shift_case() {
  using N = std::pair<std::vector<ShiftNumbers>, std::vector<ShiftNumbers>>;  // none, batchnorm
  const std::vector<ShiftNumbers> none(3, {1, 0.9, 0.5}), batch(3, {1, 0.89, 0.49});
  // The mean of the differences 0.01, 0.01 and -0.01 is positive, but not significantly.
  return verdict_case<N>(
      "covariate-shift", {none, batch},
      [](const N& n, Result& r) { judge_shift("deep_linear", n.first, n.second, r); },
      {{"|G - G'|",
        [](N& n) {
          for (ShiftNumbers& of : n.second) of.distance = 0.99;
        }},
       {"cos(G, G')", [](N& n) { n.second[1].cosine = -0.91; }},
       {"last train loss", [](N& n) { n.second[2].loss = 0.51; }}});
}

VerdictCase noise_case() {
  using N = NoisyRuns;
  const auto three = [](const NoisyNumbers& of) { return std::vector<NoisyNumbers>(3, of); };
  const N good{three({1, 0.1, 0.1}), three({0.5, 0.1, 0.2}), three({0.62, 0.11, 0.21})};
  return verdict_case<N>(
      "noisy-batchnorm", good, [](const N& n, Result& r) { judge_noise("cifar_vgg", n, r); },
      {{"of that loss, 0.25 (none - batchnorm) -", [](N& n) { n.noisy[0].loss = 0.63; }},
       {"last train loss",
        [](N& n) {
          n.batch[1].loss = 1.01;
          n.noisy[1].loss = 1.0025;  // the other claim keeps its number
        }},
       {"moved, noisybatchnorm - none", [](N& n) { n.none[2].moved = 0.12; }},
       {"moved, noisybatchnorm - batchnorm", [](N& n) { n.batch[2].moved = 0.12; }},
       {"stretched, noisybatchnorm - none", [](N& n) { n.none[0].stretched = 0.22; }},
       {"stretched, noisybatchnorm - batchnorm", [](N& n) { n.batch[0].stretched = 0.22; }}});
}

VerdictCase landscape_case() {
  using N = std::pair<LandscapeFigures, LandscapeFigures>;
  const auto figures = [](double size) {
    LandscapeFigures made;
    for (const char* name : {"loss band", "beta"}) made.push_back({name, {0, size, 1e9}});
    return made;
  };
  std::vector<Spoil<N>> spoils;
  for (const std::size_t i : {0, 1}) {
    spoils.push_back({i == 0 ? "loss band of none / x's" : "beta of none / x's",
                      [i](N& n) { n.first[i].second[1] = 9.9; }});
  }
  return verdict_case<N>(
      "landscape", {figures(10.1), figures(1)},
      [](const N& n, Result& r) {
        judge_landscape({"", "x"}, std::span(&n.first, 1), std::span(&n.second, 1), r);
      },
      spoils);
}

VerdictCase task_landscape_case() {
  using Seeds = std::vector<LandscapeFigures>;
  using N = std::pair<Seeds, Seeds>;
  const auto seeds = [](double size) { return Seeds(3, {{"beta", {0, size, 1e9}}}); };
  return verdict_case<N>(
      "landscape", {seeds(1.01), seeds(1)},
      [](const N& n, Result& r) {
        judge_landscape({"cifar_vgg", "x"}, n.first, n.second, r);
      },
      {{"log10 of beta of none / x's", [](N& n) { n.first[1][0].second[1] = 0.98; }}});
}

VerdictCase best_case() {
  using N = BestCosts;
  return verdict_case<N>(
      "convergence", {"attentive_reader", "recurrentbatchnorm", {50, 51, 52}, {51, 52, 53}},
      judge_best,
      {{"by how much layernorm's best result is better", [](N& n) { n.layernorm[1] = 54; }}});
}

VerdictCase transfer_case() {
  using N = TransferNumbers;
  return verdict_case<N>("transfer", {"MR", true, {1, 1, 1}}, judge_transfer,
                         {{"by how much layernorm is better", [](N& n) { n.better[0] = -1; }}});
}

VerdictCase speedup_case() {
  using N = SpeedupNumbers;
  return verdict_case<N>("convergence", {"draw", "none", "layernorm{eps=1e-5}", {1.2, 1.3, 1.25}},
                         judge_speedup, {{"updates of none", [](N& n) {
                                            n.found = {1.2, 1.3, 0.7};
                                          }}});
}

VerdictCase curve_case() {
  using N = CurvePair;
  const LastLosses simple{"layernorm_simple", {1.2, 1.3, 1.25}, {2.0, 2.1, 2.05}},
      full{"layernorm{eps=1e-5}", {1.1, 1.15, 1.12}, {2.2, 2.25, 2.3}};
  return verdict_case<N>("convergence", {"translation", "iwslt15", full, simple}, judge_curves,
                         {{"last train loss of layernorm_simple", [](N& n) { n.b.train[1] = 1; }},
                          {"last valid loss of layernorm", [](N& n) { n.a.valid[1] = 2; }}});
}

// The value that is shown and not judged; it counts neither way.
template <class Judge>
double shown(const Judge& judge) {
  Result result;
  judge(result);
  REQUIRE(result.checks.size() == 1);
  CHECK_FALSE(result.checks[0].judged);
  CHECK(result.holds());
  return result.checks[0].measured;
}

TEST_CASE("studies: what is not judged is measured the way that it says") {
  CHECK(shown([](Result& r) { judge_growth("x", {1, 2, 5}, {2, 4, 9}, r); }) == 2);
  CHECK(shown([](Result& r) { judge_areas({"x", false, {0.25, 0.25, 0.625}}, r); }) == 0.375);
  CHECK(shown([](Result& r) { judge_areas({"x", true, {0.25, 0.5}}, r); }) == 0.375);
  CHECK(shown([](Result& r) { judge_quadratic({"x", "y", {{1, 2, 9}}, {{3, 20, 30}}}, r); }) == 1);
  CHECK(shown([](Result& r) {
          judge_shares("x", true, std::vector{0.5, 1.0, 2.0, 3.0}, r);
        }) == 0.5);
  CHECK(shown([](Result& r) {
          judge_share_seeds({"translation", "batchnorm", false, {0.5, 1}}, r);
        }) == 0.75);
  CHECK(shown([](Result& r) { judge_share_seeds({"word_lm", "pn_v", true, {1, 1, 1}}, r); }) == 1);
  CHECK(shown([](Result& r) {
          judge_share_seeds({"translation", "pn_v", true, {1, 0.5}}, r);
        }) == 0.5);
  CHECK(shown([](Result& r) { judge_transfer({"x", false, {1, 1, 4}}, r); }) == 2);
  CHECK(shown([](Result& r) { judge_margin({"x", false, {1, 2, 6}}, r); }) == 3);
  CHECK(shown([](Result& r) { judge_margin({"x", true, {1, 2}}, r); }) == 1.5);
  CHECK(shown([](Result& r) { judge_margin({"x", true, {1, 1, 4}, true}, r); }) == 2);
  CHECK(shown([](Result& r) { judge_speedup({"draw", "none", "x", {4, 2, 3}}, r); }) == 2);
  CHECK(shown([](Result& r) { judge_speedup({"mnist_mlp", "y", "x", {4, 2, 3}}, r); }) == 2);
  CHECK(shown([](Result& r) { judge_speedup({"mnist_mlp", "none", "x", {4, 2}}, r); }) == 2);
  CHECK(shown([](Result& r) {
          const LandscapeFigures none{{"beta", {1, 60, 70}}}, of{{"beta", {1, 6, 7}}};
          judge_landscape({"draw", "x"}, std::span(&none, 1), std::span(&of, 1), r);
        }) == doctest::Approx(1));
  Result shift;
  const ShiftNumbers none{1, 0.5, 3}, batch{4, 0.25, 2};
  judge_shift("draw", std::span(&none, 1), std::span(&batch, 1), shift);
  const double expected[] = {3, 0.25, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(shift.checks.at(i).measured == expected[i]);
    CHECK_FALSE(shift.checks[i].judged);
  }
}

// Detached statistics are worse by both losses, in a translation; of other norms the source says
// nothing.
TEST_CASE("studies: curves are judged of finished runs on real data, which the claim names") {
  const auto judge = [](const std::string& task, const std::string& data, const std::string& a,
                        const std::string& b, std::size_t seeds = 3) {
    const LastLosses high{a, SeedValues(seeds, 3), SeedValues(seeds, 3)},
        low{b, SeedValues(seeds, 2), SeedValues(seeds, 2)};
    Result result;
    judge_curves({task, data, low, high}, result);
    return result.checks;
  };
  const auto judged = [&](const auto&... of) {
    const std::vector<Check> checks = judge(of...);
    return std::pair(checks.size(), std::ranges::count_if(checks, &Check::judged));
  };
  using Counts = std::pair<std::size_t, std::ptrdiff_t>;
  const std::string mt = "translation", simple = "layernorm_simple";
  CHECK(judged(mt, "iwslt14", "detachnorm", simple) == Counts(2, 2));
  CHECK(judged(mt, "iwslt14", "detachnorm", simple, std::size_t{2}) == Counts(2, 0));
  CHECK(judged(mt, "multi30k", "detachnorm", simple) == Counts(2, 2));
  CHECK(judged("text_classifier", "rt", "detachnorm", simple) == Counts(2, 0));
  CHECK(judged(mt, "", "adanorm{k=0.1}", "layernorm") == Counts(2, 0));
  CHECK(judged("dependency_parser", "DIR/en_ewt", "adanorm{k=0.1}", "layernorm") == Counts(2, 2));
  CHECK(judged("char_lm", "DIR/enwik8", "layernorm", simple) == Counts(2, 2));
  CHECK(judged("text_classifier", "sst5", "layernorm", simple) == Counts(2, 2));
  CHECK(judged("mnist_mlp", "digits", "layernorm", simple) == Counts(2, 0));
  CHECK(judged(mt, "iwslt14", "powernorm", "layernorm") == Counts(0, 0));
  CHECK(judge("char_lm", "DIR/enwik8", "layernorm", simple)[0].claim ==
        "char_lm on DIR/enwik8: last train loss of layernorm_simple - layernorm's");
  CHECK(judge("text_classifier", "rt", "layernorm", simple)[1].claim ==
        "text_classifier on rt, where the figure has IWSLT15 and enwik8: last valid loss of "
        "layernorm - layernorm_simple's");
}

TEST_CASE("studies: means of fewer seeds than the source has are not judged") {
  SentenceNumbers numbers = good_sentences();
  for (auto& [label, loss] : numbers.loss) loss.resize(2);
  numbers.loss["pn_v"] = {3, 3};
  Result result;
  judge_sentences(numbers, result);
  CHECK(result.holds());
  CHECK_FALSE(result.checks.at(1).judged);
}

// Figures 1 and 2 of Ba, Kiros, Hinton 2016 have no other pairs.
TEST_CASE("studies: best results are judged of the tasks and norms that a figure shows") {
  const auto judged = [](const std::string& task, const std::string& norm) {
    Result result;
    judge_best({task, norm, {1, 1, 1}, {2, 2, 2}}, result);
    return result.checks.size();
  };
  CHECK(judged("order_embeddings", "none") == 1);
  CHECK(judged("order_embeddings", "batchnorm") == 0);
  CHECK(judged("attentive_reader", "none") == 1);
  CHECK(judged("attentive_reader", "recurrentbatchnorm{steps=480}") == 1);
  CHECK(judged("attentive_reader", "layernorm") == 0);
  CHECK(judged("handwriting", "none") == 0);
}

TEST_CASE("studies: a shift is no smaller unless three seeds show that it is") {
  const auto holds = [](std::vector<double> more) {
    Result result;
    result.not_below_zero_over_seeds("x", more);
    return result.holds();
  };
  CHECK(holds({-0.1, 0, -0.1}));  // t = -2
  CHECK_FALSE(holds({-0.1, -0.05, -0.1}));
  CHECK(holds({-1, -1}));  // two seeds judge nothing
}

TEST_CASE("studies: a speedup by hand") {
  // The best of the first comes after 30 updates; the other passes it half way from 10 to 20.
  const std::vector<CostPoint> first{{10, 5}, {20, 4}, {30, 3}, {40, 3.5}},
      other{{10, 4}, {20, 2}, {30, 9}}, never{{10, 9}, {20, 3.5}}, at_once{{10, 1}, {20, 0}};
  CHECK(speedup(first, other) == 2);
  CHECK(speedup(first, first) == 1);
  CHECK(speedup(first, never) == 0);
  CHECK(speedup(first, at_once) == 3);
}

}  // namespace

std::vector<VerdictCase> trained_verdict_cases() {
  std::vector<VerdictCase> cases{
      batch_case(),          detached_case(), sentence_case(), deeper_case(), trained_signs_case(),
      placement_case(),      boundary_case(), shift_case(),    noise_case(),  landscape_case(),
      task_landscape_case(), speedup_case(),  best_case(),     curve_case(),  transfer_case()};
  cases.push_back(verdict_case<SeedValues>(
      "transfer", {0.1, 0.1, 0.1},
      [](const SeedValues& gains, Result& r) { judge_topics("none", gains, r); },
      {{"tells topics apart", [](SeedValues& gains) { gains[1] = -0.1; }}}));
  return cases;
}

}  // namespace keel::study
