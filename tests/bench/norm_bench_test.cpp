// The benchmark of norms: every norm is timed, both ways, and oneDNN's primitives beside it compute
// what ours do.
#include "bench/norm_bench.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "backends/backends.h"
#include "bench/norm_peer.h"
#include "bench/norm_programs.h"
#include "bench/plain_copy.h"
#include "frontend/nn/norm.h"
#include "src/core/rng.h"
#include "tests/support/checks.h"

namespace keel::bench {
namespace {

void check_pass(const NormPass& pass, std::int64_t bytes) {
  CHECK(pass.bytes == bytes);
  CHECK(pass.norm.median > 0);
  CHECK(pass.copy.median > 0);
  CHECK((std::isfinite(pass.ratio()) && pass.ratio() > 0));
  CHECK(std::isfinite(pass.gigabytes_per_second()));
  if (pass.peer) CHECK((std::isfinite(pass.peer_ratio()) && pass.peer_ratio() > 0));
}

TEST_CASE("bench norms: every norm, forward and backward" * doctest::test_suite("slow")) {
  const auto backend = make_backend(default_backend(), {.threads = 2});
  const std::int64_t element = size_of(backend->storage(DType::kF32));
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    if (facts.name == "none") continue;
    CAPTURE(facts.name);
    NormBench b = bench_norm(*backend, facts.any_width(), {6, 16}, 3);
    // Instance norm takes only images.
    if (facts.name == "instancenorm") b = bench_norm(*backend, facts.name, {2, 3, 4, 4}, 3);
    CHECK(b.refusal == "");
    check_pass(b.forward, 2 * 96 * element);
    // With the deviation held constant dx depends only on dy, but for a factor a row.
    const bool needs_x = facts.name != "detachnorm" && facts.name != "detachvariance";
    check_pass(b.backward, (needs_x ? 3 : 2) * 96 * element);
    const bool has_peer = facts.name == "layernorm" || facts.name == "batchnorm";
    CHECK(b.forward.peer.has_value() == (has_peer && backend->name() == "onednn"));
    CHECK(b.backward.peer.has_value() == b.forward.peer.has_value());
  }
}

TEST_CASE("bench norms: a residual is added before the norm, and the sum has a gradient") {
  const auto backend = make_backend("reference");
  for (const char* name : {"layernorm", "batchnorm", "rmsnorm{bias=true}"}) {
    CAPTURE(std::string(name));
    const nn::Norm norm = nn::Norm::parse(name);
    Feeds feeds;
    for (const char* input : {"x", "dy", "residual", "dsum"}) {
      feeds[input] = test::random_normal({6, 16}, std::uint32_t(feeds.size()));
    }
    const Results got = run_graph(*backend, norm_graph(norm, {6, 16}, true), feeds);
    Feeds alone;
    alone["x"] = got.at("sum").clone();
    alone["dy"] = feeds["dy"].clone();
    Results expected = run_graph(*backend, norm_graph(norm, {6, 16}), alone);
    Tensor& dx = expected.at("gradient of x");
    for (std::int64_t e = 0; e < dx.elements(); ++e) {
      CHECK(got.at("sum").at(e) == feeds["x"].at(e) + feeds["residual"].at(e));
      dx.as<double>()[std::size_t(e)] += feeds["dsum"].at(e);
    }
    CHECK(got.size() == expected.size() + 1);
    for (const auto& [output, value] : expected) {
      CAPTURE(output);
      test::check_close(got.at(output), value, 1e-14);
    }
  }
}

TEST_CASE("bench norms: the shapes that are measured when none is asked for") {
  const std::vector<Shape> expected{{8, 400},    {128, 1000},  {1024, 1024},    {4096, 128},
                                    {4096, 512}, {32768, 512}, {32, 64, 56, 56}};
  CHECK(norm_bench_shapes() == expected);
  const std::vector<Shape> of_gpu = norm_bench_shapes(true);
  CHECK(of_gpu.size() == 13);
  CHECK(of_gpu[0] == Shape{4096, 256});
  CHECK(of_gpu[11] == Shape{65536, 16384});
  CHECK(of_gpu[12] == Shape{32, 64, 56, 56});
}

TEST_CASE("bench norms: images, and refusals") {
  const auto backend = make_backend(default_backend(), {.threads = 2});
  const NormBench b = bench_norm(*backend, "batchnorm", {2, 3, 4, 5}, 3);
  CHECK(b.refusal == "");
  check_pass(b.forward, 2 * 120 * size_of(backend->storage(DType::kF32)));
  CHECK(bench_norm(*backend, "layernorm{axes=3}", {4, 5}, 3).refusal != "");
  CHECK_THROWS_AS(bench_norm(*backend, "layernom", {4, 5}, 3), Error);
}

TEST_CASE("bench norms: of bf16, of which an element has two bytes") {
  if (default_backend() != "onednn") return;
  const auto backend = make_backend("onednn", {.threads = 2});
  for (const char* norm : {"layernorm", "batchnorm", "powernorm", "noisybatchnorm"}) {
    CAPTURE(norm);
    const NormBench b = bench_norm(*backend, norm, {6, 16}, 3, {.is_narrow = true});
    CHECK(b.refusal == "");
    check_pass(b.forward, 2 * 96 * 2);
    check_pass(b.backward, 3 * 96 * 2);
    CHECK_FALSE(b.forward.peer.has_value());
  }
  CHECK(bench_norm(*backend, "weightnorm", {6, 16}, 3, {.is_narrow = true}).refusal != "");
}

TEST_CASE("bench norms: the plain copy copies every byte and no more") {
  const auto backend = make_backend(default_backend(), {.threads = 2});
  for (std::int64_t bytes : {0, 5, 64, 200'000, (16 << 20) + 100}) {
    CAPTURE(bytes);
    const auto from = backend->allocate(bytes + 64), to = backend->allocate(bytes + 64);
    std::vector<std::byte> sent(std::size_t(bytes + 64)), got(sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = std::byte(1 + i % 251);
    from->upload(0, sent.data(), bytes + 64);
    const Kernel copy = plain_copy(*backend, to->address(), from->address(), bytes);
    backend->run({&copy, 1});
    to->download(0, got.data(), bytes + 64);
    CHECK(std::memcmp(got.data(), sent.data(), std::size_t(bytes)) == 0);
    for (std::size_t i = 0; i < 64; ++i) CHECK(got[std::size_t(bytes) + i] == std::byte(0));
  }
}

struct Peers {
  std::unique_ptr<Backend> backend = make_backend("onednn", {.threads = 2});
  Tensor x, dy;
  std::unique_ptr<NormPeer> peer;

  Peers(const std::string& norm, const Shape& shape)
      : x(DType::kF32, shape), dy(DType::kF32, shape) {
    const Philox random(1, 2);
    std::uint64_t element = 0;
    for (float& v : x.as<float>()) v = float(random.normal(element++)) + 3;
    for (float& v : dy.as<float>()) v = float(random.normal(element++));
    peer = make_norm_peer(*backend, norm, x, dy);
    REQUIRE(peer != nullptr);
    backend->run({&peer->forward, 1});
    backend->run({&peer->backward, 1});
  }

  // y and dx of the group whose element e lies at offset + e * stride.
  void check_group(std::int64_t n, std::int64_t offset, std::int64_t stride) const {
    const auto at = [&](std::int64_t e) { return offset + e * stride; };
    double mean = 0, squares = 0, g = 0, slope = 0;
    for (std::int64_t e = 0; e < n; ++e) mean += x.at(at(e)) / double(n);
    for (std::int64_t e = 0; e < n; ++e) squares += std::pow(x.at(at(e)) - mean, 2) / double(n);
    const double rstd = 1 / std::sqrt(squares + 1e-5);
    const auto xhat = [&](std::int64_t e) { return (x.at(at(e)) - mean) * rstd; };
    for (std::int64_t e = 0; e < n; ++e) {
      g += dy.at(at(e)) / double(n);
      slope += dy.at(at(e)) * xhat(e) / double(n);
    }
    for (std::int64_t e = 0; e < n; ++e) {
      const double dx = rstd * (dy.at(at(e)) - g - xhat(e) * slope);
      CHECK(peer->y.as<float>()[at(e)] == doctest::Approx(xhat(e)).epsilon(1e-4));
      CHECK(peer->dx.as<float>()[at(e)] == doctest::Approx(dx).epsilon(1e-4));
    }
  }
};

TEST_CASE("bench norms: the peers are the layer and batch normalization that they stand for") {
  if (default_backend() != "onednn") return;
  const Peers rows("layernorm", {5, 37});
  for (std::int64_t k = 0; k < 5; ++k) rows.check_group(37, k * 37, 1);
  const Peers columns("batchnorm", {37, 5});
  for (std::int64_t k = 0; k < 5; ++k) columns.check_group(37, k, 5);
  const Peers images("batchnorm", {1, 3, 4, 5});
  for (std::int64_t k = 0; k < 3; ++k) images.check_group(20, k * 20, 1);
  const auto backend = make_backend("onednn", {.threads = 1});
  CHECK(make_norm_peer(*backend, "rmsnorm", rows.x, rows.dy) == nullptr);
  CHECK(make_norm_peer(*make_backend("reference"), "layernorm", rows.x, rows.dy) == nullptr);
}

}  // namespace
}  // namespace keel::bench
