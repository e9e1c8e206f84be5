// Where JAX is installed, it computes what ours do.
#include <doctest/doctest.h>

#include "backends/backends.h"
#include "bench/library_peer.h"
#include "bench/norm_bench.h"
#include "bench/step_bench.h"
#include "tests/support/small_run.h"

namespace keel::bench {
namespace {

// Null, with a message, where JAX is not installed. One thread: on a busy machine several wait for
// each other for long.
std::unique_ptr<LibraryPeer> jax_peer(const std::vector<std::string>& modes = {"usual"}) {
  std::string missing;
  auto peer = LibraryPeer::start({.library = "jax", .threads = 1, .modes = modes}, missing);
  if (!peer) MESSAGE("skipped: no JAX: " << missing);
  return peer;
}

TEST_CASE("jax peer: JAX computes every norm as ours do") {
  const auto peer = jax_peer();
  if (!peer) return;
  const auto backend = make_backend(default_backend(), {.threads = 2});
  std::vector<std::string> norms{"rmsnorm{bias=true}",
                                 "groupnorm{groups=4}",
                                 "adanorm{detach=false}",
                                 "layernorm{axes=2}",
                                 "batchrenorm{r_max=2,d_max=1}",
                                 "mabn{m=2,warmup=1,clip_after=1}",
                                 "unifiednorm{m=2,warmup=1,clip_after=1}",
                                 "powernorm{heads=0,warmup=2}",
                                 "powernorm{mode=paper,warmup=3}",
                                 "powernorm{heads=0,alpha_f=0.5,alpha_b=0.5}"};
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    // JAX is not given keel's noise.
    if (facts.name != "none" && facts.name != "noisybatchnorm") norms.push_back(facts.any_width());
  }
  for (const std::string& norm : norms) {
    for (const Shape& shape : {Shape{64, 128}, Shape{8, 16, 20, 24}}) {
      CAPTURE(norm);
      CAPTURE(shape.text());
      const NormBench b = bench_norm(*backend, norm, shape, 3, {peer.get()});
      CHECK(b.peer_refusal == "");
      CHECK(b.peer.has_value() == (b.refusal == ""));
    }
  }
  const NormBenchOptions options{.library = peer.get(), .has_residual = true};
  CHECK(bench_norm(*backend, "layernorm", {64, 128}, 3, options).peer_refusal == "");
  // What the script does not know is detected, or said.
  const NormBench b = bench_norm(*backend, "layernorm{unbiased=true}", {64, 128}, 3, {peer.get()});
  CHECK(b.peer_refusal.starts_with("computes something else: y: "));
  CHECK(bench_norm(*backend, "noisybatchnorm", {64, 128}, 3, {peer.get()}).peer_refusal ==
        "the norm noisybatchnorm is not written for JAX");
}

TEST_CASE("jax peer: JAX takes the same training step") {
  const auto peer = jax_peer();
  if (!peer) return;
  const auto backend = make_backend(default_backend(), {.threads = 2});
  const struct {
    const char* model;
    test::Settings settings;
  } rows[] = {{"mnist_mlp", {}},
              {"mnist_mlp", {"model.norm=batchnorm", "train.optimizer=sgd"}},
              {"mnist_mlp", {"model.norm=powernorm", "train.optimizer=adamw"}},
              {"mnist_mlp", {"train.clip=global", "train.clip_limit=0.05"}},
              {"mnist_cnn", {"model.norm=none"}},
              {"mnist_cnn", {"model.architecture=B"}},
              {"mnist_cnn", {"model.architecture=C", "model.norm=batchnorm"}},
              {"mnist_cnn", {"model.architecture=D", "model.norm=layernorm{per_pixel=true}"}},
              {"text_classifier", {"model.dropout=0"}},
              {"text_classifier", {"model.dropout=0", "model.place=post", "model.norm=adanorm"}},
              {"text_classifier", {"model.dropout=0", "model.positions=learned"}},
              {"char_lm",
               {"model.architecture=llama", "model.norm=rmsnorm", "model.place=pre",
                "model.dropout=0", "model.memory=0", "model.kv_heads=1", "model.qk_norm=true"}}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.model));
    const StepBench b =
        bench_step(*backend, test::small_job(row.settings, row.model), 3, peer.get());
    CHECK(b.peer_refusal == "");
    REQUIRE(b.peer.has_value());
    CHECK(b.peer->ratio() > 0);
  }
}

TEST_CASE("jax peer: with channels last it takes the same step") {
  const auto peer = jax_peer({"channels_last"});
  if (!peer) return;
  const auto backend = make_backend(default_backend(), {.threads = 2});
  for (const char* norm :
       {"layernorm", "layernorm{per_pixel=true}", "batchnorm", "groupnorm{groups=2}"}) {
    CAPTURE(std::string(norm));
    const test::Settings settings{"model.architecture=C", std::string("model.norm=") + norm};
    CHECK(
        bench_step(*backend, test::small_job(settings, "mnist_cnn"), 3, peer.get()).peer_refusal ==
        "");
  }
}

TEST_CASE("jax peer: steps that it does not take") {
  const auto peer = jax_peer();
  if (!peer) return;
  const auto backend = make_backend(default_backend(), {.threads = 2});
  const auto refusal = [&](const test::Settings& settings, const char* model) {
    return bench_step(*backend, test::small_job(settings, model), 3, peer.get()).peer_refusal;
  };
  CHECK(refusal({"model.dropout=0.2"}, "text_classifier").starts_with("expected model.dropout=0"));
  CHECK(refusal({"model.dropout=0"}, "char_lm") ==
        "expected model.architecture=llama for JAX, got transformer_xl");
  CHECK(refusal({}, "deep_linear").starts_with("expected a task of mnist_mlp, mnist_cnn,"));
}

}  // namespace
}  // namespace keel::bench
