#include "frontend/decode/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "src/core/error.h"
#include "src/core/rng.h"

namespace keel::decode {
namespace {

constexpr std::uint32_t kTokenStream = stream_of("decode.tokens");

void expect_numbers(std::span<const float> logits) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    check(!std::isnan(logits[i]) && logits[i] != INFINITY, ErrorKind::kDiverged,
          "[sampler] logit {}: expected a number, got {}", i, logits[i]);
  }
  check(std::ranges::any_of(logits, [](float x) { return x != -INFINITY; }), ErrorKind::kDiverged,
        "[sampler] expected a logit above -infinity among {}, got none", logits.size());
}

// The first `count` tokens by logit.
std::vector<std::int32_t> likeliest(std::span<const float> logits, std::size_t count) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto comes_first = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[std::size_t(a)], y = logits[std::size_t(b)];
    return x > y || (x == y && a < b);
  };
  std::ranges::partial_sort(order, order.begin() + std::ptrdiff_t(count), comes_first);
  order.resize(count);
  return order;
}

// How many of these weights, the largest first, have the share p of their sum together.
std::size_t kept_by(const std::vector<double>& weights, double p) {
  const double wanted = p * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t n = 0; n < weights.size(); ++n) {
    sum += weights[n];
    if (sum >= wanted) return n + 1;
  }
  return weights.size();
}

}  // namespace

std::int32_t drawn_token(std::span<const float> logits, const task::SampleOptions& options,
                         double uniform) {
  expect_numbers(logits);
  const std::size_t all = logits.size();
  if (options.temperature == 0) return likeliest(logits, 1)[0];
  const std::size_t k = options.top_k > 0 ? std::min(all, std::size_t(options.top_k)) : all;
  const std::vector<std::int32_t> tokens = likeliest(logits, k);
  const double largest = logits[std::size_t(tokens[0])];
  std::vector<double> weights;
  for (const std::int32_t token : tokens) {
    weights.push_back(std::exp((logits[std::size_t(token)] - largest) / options.temperature));
  }
  weights.resize(kept_by(weights, options.top_p));
  const double wanted = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t n = 0; n < weights.size(); ++n) {
    sum += weights[n];
    if (sum > wanted) return tokens[n];
  }
  return tokens[weights.size() - 1];
}

double token_uniform(std::uint64_t seed, std::int64_t n) {
  return Philox(seed, kTokenStream).uniform(std::uint64_t(n));
}

}  // namespace keel::decode
