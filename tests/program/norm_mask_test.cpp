// keel norm: masks, noise and the three modes of every variant.
#include "frontend/nn/norm.h"
#include "tests/program/norm_case.h"

namespace keel::cli {
namespace {

constexpr std::int64_t kKept[] = {0, 2, 5}, kSkipped[] = {1, 3, 4};  // of six rows of four

// Two steps, the second with padding of that value.
Arrays masked_steps(double padding) {
  Arrays given = arrays_of("s0.x", random({2, 3, 4}, 1), "s0.dy", random({2, 3, 4}, 2), "s1.x",
                           random({2, 3, 4}, 3), "s1.dy", random({2, 3, 4}, 4));
  given["s1.mask"] = Tensor::of<std::uint8_t>({2, 3}, {1, 0, 1, 0, 0, 1});
  for (std::int64_t row : kSkipped) {
    std::fill_n(&given["s1.x"].as<double>()[std::size_t(row * 4)], 4, padding);
  }
  return given;
}

Tensor kept_rows(const Tensor& x) {
  Tensor kept(x.dtype(), {3, 4});
  for (std::size_t i = 0; i < 12; ++i) {
    kept.as<double>()[i] = x.at(kKept[i / 4] * 4 + std::int64_t(i % 4));
  }
  return kept;
}

TEST_CASE_FIXTURE(Case, "norm: a mask leaves rows out of every norm over the batch") {
  const Arrays given = masked_steps(7), other = masked_steps(-1e6);
  Arrays kept = masked_steps(7);
  for (const char* name : {"s1.x", "s1.dy"}) kept[name] = kept_rows(kept.at(name));
  kept.erase("s1.mask");
  int masked = 0;
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    const nn::Norm norm = nn::Norm::parse(facts.name);
    // The noise of a row depends on where it stands.
    if (!norm.takes_mask() || !norm.is_batch_type() || facts.name == "noisybatchnorm") continue;
    CAPTURE(facts.name);
    const Names arguments{facts.name, "--backend", "reference", "--dtype", "f64"};
    const Arrays got = results(given, arguments), expected = results(kept, arguments);
    for (const auto& [name, array] : results(other, arguments)) {
      CAPTURE(name);
      CHECK(values(array) == values(got.at(name)));
      const bool has_rows = name == "s1.y" || name == "s1.dx";
      check_close(has_rows ? kept_rows(array) : array.clone(), values(expected.at(name)), 1e-12);
      for (std::int64_t row : kSkipped) CHECK((!has_rows || array.at(row * 4) == 0));
    }
    ++masked;
  }
  CHECK(masked >= 5);
}

// y as in training; every state as it was.
TEST_CASE_FIXTURE(Case, "norm: a probe changes no state, evaluation needs none of the batch") {
  const Arrays given = arrays_of("x", random({2, 5, 6}, 1), "dy", random({2, 5, 6}, 2));
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    CAPTURE(facts.name);
    const Arrays train = results(given, {facts.any_width()});
    const Arrays probe = results(given, {facts.any_width(), "--mode", "probe"});
    const Arrays evaluation = results(given, {facts.any_width(), "--mode", "eval"});
    int changed = 0;
    for (const auto& [name, array] : probe) {
      CAPTURE(name);
      const bool is_state = name.starts_with("state.");
      CHECK(values(array) == values((is_state ? evaluation : train).at(name)));
      changed += is_state && values(array) != values(train.at(name));
    }
    CHECK((changed > 0) == nn::Norm::parse(facts.name).is_batch_type());
  }
}

// y of two steps with the same x.
TEST_CASE_FIXTURE(Case,
                  "norm: noise is drawn anew every step, by a seed, and never in evaluation") {
  const Tensor x = random({8, 3}, 1);
  const Arrays given = arrays_of("s0.x", x.clone(), "s1.x", x.clone());
  const Arrays noisy = results(given, {"noisybatchnorm"});
  const Arrays again = results(given, {"noisybatchnorm", "--seed", "0"});
  const Arrays other = results(given, {"noisybatchnorm", "--seed", "1"});
  const Arrays plain = results(given, {"batchnorm"});
  for (const char* step : {"s0.y", "s1.y"}) {
    CHECK(values(noisy.at(step)) == values(again.at(step)));
    CHECK(values(noisy.at(step)) != values(other.at(step)));
    CHECK(values(noisy.at(step)) != values(plain.at(step)));
  }
  CHECK(values(noisy.at("s0.y")) != values(noisy.at("s1.y")));
  CHECK(values(noisy.at("s1.state.running_mean")) == values(plain.at("s1.state.running_mean")));
  CHECK(values(results(given, {"noisybatchnorm", "--mode", "eval"}).at("s1.y")) ==
        values(results(given, {"batchnorm", "--mode", "eval"}).at("s1.y")));
}

// Rows of padding hold the bias, and have no gradient.
TEST_CASE_FIXTURE(Case, "norm: padding as in the release of PowerNorm is an option") {
  Arrays given = arrays_of("x", random({4, 3}, 1), "dy", random({4, 3}, 2), "mask",
                           Tensor::of<std::uint8_t>({4}, {1, 0, 1, 1}));
  given["bias"] = random({3}, 3);
  const Arrays got = results(given, {"batchnorm{padding=pn_code}", "--backend", "reference"});
  for (std::int64_t c = 0; c < 3; ++c) {
    CHECK(got.at("y").at(3 + c) == doctest::Approx(given.at("bias").at(c)).epsilon(1e-6));
    CHECK(got.at("dx").at(3 + c) == 0);
  }
}

}  // namespace
}  // namespace keel::cli
