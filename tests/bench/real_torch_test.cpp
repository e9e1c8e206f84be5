// Where PyTorch is installed, it computes what ours do.
#include <doctest/doctest.h>

#include <algorithm>

#include "backends/backends.h"
#include "bench/library_peer.h"
#include "bench/norm_bench.h"
#include "bench/softmax_bench.h"
#include "bench/step_bench.h"
#include "tests/support/small_run.h"

namespace keel::bench {
namespace {

// Null, with a message, where PyTorch is not installed. One thread: on a busy machine several wait
// for each other for long.
std::unique_ptr<LibraryPeer> real_peer(const std::vector<std::string>& modes = {"usual"}) {
  std::string missing;
  auto peer = LibraryPeer::start({.threads = 1, .modes = modes}, missing);
  if (!peer) MESSAGE("skipped: no PyTorch: " << missing);
  return peer;
}

TEST_CASE("torch peer: PyTorch computes every norm as ours do") {
  const auto peer = real_peer();
  if (!peer) return;
  const auto backend = make_backend(default_backend(), {.threads = 2});
  std::vector<std::string> norms{"rmsnorm{bias=true}",
                                 "groupnorm{groups=4}",
                                 "adanorm{detach=false}",
                                 "powernorm{heads=4,mode=paper}",
                                 "layernorm{axes=2}",
                                 "batchrenorm{r_max=2,d_max=1}",
                                 "batchrenorm{r_start=0,r_end=4,d_start=1,d_end=4,updates=100000}",
                                 "batchnorm{mean_penalty=5,deviation_penalty=3}",
                                 "mabn{m=2,warmup=1,clip_after=1}",
                                 "unifiednorm{m=2,warmup=1,clip_after=1}",
                                 "powernorm{heads=0,warmup=2}",
                                 "powernorm{mode=paper,warmup=3}",
                                 "powernorm{heads=0,alpha_f=0.5,alpha_b=0.5}"};
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    if (facts.name != "none") norms.push_back(facts.any_width());
  }
  for (const std::string& norm : norms) {
    for (const Shape& shape : {Shape{64, 128}, Shape{8, 16, 20, 24}}) {
      if (norm.find("heads=4") != norm.npos && shape.rank() == 4) continue;  // only of tokens
      CAPTURE(norm);
      CAPTURE(shape.text());
      const NormBench b = bench_norm(*backend, norm, shape, 3, {peer.get()});
      CHECK(b.peer_refusal == "");
      CHECK(b.peer.has_value() == (b.refusal == ""));
    }
  }
  for (const char* norm : {"layernorm", "rmsnorm", "batchnorm"}) {
    CAPTURE(std::string(norm));
    const NormBenchOptions options{.library = peer.get(), .has_residual = true};
    CHECK(bench_norm(*backend, norm, {64, 128}, 3, options).peer_refusal == "");
  }
  // A norm that the script does not know is detected.
  const NormBench b = bench_norm(*backend, "layernorm{unbiased=true}", {64, 128}, 3, {peer.get()});
  CHECK(b.peer_refusal.starts_with("computes something else: y: "));
}

// Settings of translation for a peer that has no dropout.
test::Settings without_dropout(test::Settings more = {}) {
  more.insert(more.end(), {"model.dropout=0", "model.attention_dropout=0", "model.relu_dropout=0",
                           "model.label_smoothing=0.1"});
  return more;
}

// Settings of char_lm's Llama for a peer that has neither dropout nor memory.
test::Settings small_llama(const test::Settings& more) {
  test::Settings settings{"model.architecture=llama", "model.norm=rmsnorm", "model.place=pre",
                          "model.dropout=0", "model.memory=0"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST_CASE("torch peer: PyTorch takes the same training step") {
  const auto peer = real_peer();
  if (!peer) return;
  const auto backend = make_backend(default_backend(), {.threads = 2});
  const struct {
    const char* model;
    test::Settings settings;
  } rows[] = {
      {"mnist_mlp", {}},
      {"mnist_mlp", {"model.norm=batchnorm", "train.optimizer=sgd"}},
      {"mnist_mlp", {"model.norm=powernorm", "train.optimizer=adamw"}},
      {"mnist_cnn", {"model.norm=none"}},
      {"mnist_cnn", {"model.architecture=B"}},
      {"mnist_cnn", {"model.architecture=C", "model.norm=batchnorm"}},
      {"mnist_cnn", {"model.architecture=D", "model.norm=layernorm{per_pixel=true}"}},
      {"cifar_resnet20", {"model.norm=batchnorm", "train.optimizer=sgd", "train.momentum=0.9"}},
      {"cifar_resnet20", {"model.norm=layernorm"}},
      {"cifar_resnet20", {"model.norm=layernorm{per_pixel=true}"}},
      {"cifar_resnet20", {"model.norm=none"}},
      {"cifar_vgg", {"model.norm=batchnorm"}},
      {"cifar_vgg", {}},
      {"deep_linear", {"model.norm=batchnorm"}},
      {"mnist_mlp", {"train.clip=global", "train.clip_limit=0.05"}},
      {"text_classifier", {"model.dropout=0"}},
      {"text_classifier", {"model.dropout=0", "model.place=post", "model.norm=adanorm"}},
      {"text_classifier", {"model.dropout=0", "model.positions=learned"}},
      {"dependency_parser", {"model.dropout=0", "model.input_dropout=0"}},
      {"dependency_parser",
       {"model.dropout=0", "model.input_dropout=0", "model.norm=none", "model.layers=2",
        "model.activation=cube"}},
      {"translation", without_dropout()},
      {"translation",
       without_dropout({"model.place=post", "model.norm=rmsnorm", "train.optimizer=adam_fairseq"})},
      {"translation", without_dropout({"model.embeddings=target", "model.layers=2"})},
      {"translation", without_dropout({"model.joint=false", "model.embeddings=none"})},
      {"char_lm", {"model.dropout=0"}},
      {"char_lm", {"model.dropout=0", "model.norm=adanorm", "model.memory=20"}},
      {"char_lm", small_llama({"model.kv_heads=1", "model.qk_norm=true"})},
      {"char_lm", small_llama({"model.place=post", "model.norm=layernorm"})},
      {"char_lm", small_llama({"model.place=simple", "model.kv_heads=2"})},
      {"char_lm", small_llama({"model.place=ngpt", "model.kv_heads=2"})},
      {"translation", without_dropout({"model.place=simple"})},
      {"word_lm", {"model.dropout=0", "model.label_smoothing=0.1"}},
      {"word_lm", {"model.dropout=0", "model.norm=batchnorm", "model.cutoffs=5,9"}},
      {"word_lm", {"model.dropout=0", "model.attention=softmax", "model.place=post"}}};
  constexpr std::string_view kAttending[] = {"text_classifier", "translation", "char_lm",
                                             "word_lm"};
  for (const auto& row : rows) {
    const bool has_attention = !peer->version().starts_with("1.");
    const bool attends =
        std::ranges::find(kAttending, std::string_view(row.model)) != std::end(kAttending);
    if (attends && !has_attention) continue;
    const StepBench b =
        bench_step(*backend, test::small_job(row.settings, row.model), 3, peer.get());
    CHECK(b.peer_refusal == "");
    REQUIRE(b.peer.has_value());
    CHECK(b.peer->ratio() > 0);
  }
}

TEST_CASE("torch peer: no steps with dropout") {
  const auto peer = real_peer();
  if (!peer) return;
  const auto backend = make_backend(default_backend(), {.threads = 2});
  const StepBench b = bench_step(
      *backend, test::small_job({"model.input_dropout=0.2"}, "dependency_parser"), 3, peer.get());
  CHECK(b.peer_refusal.find("expected model.") != std::string::npos);
  CHECK(b.peer_refusal.find("dropout=0") != std::string::npos);
}

// The mode's refusal; PyTorch's compiler may be there or not, and so may what it needs.
std::string refusal_of(const std::optional<PeerTimes>& times, const std::string& name) {
  REQUIRE(times.has_value());
  for (const PeerMode& mode : times->modes) {
    if (mode.name == name) return mode.refusal;
  }
  return "not asked for";
}

TEST_CASE("torch peer: norms composed as their formulas read are the same") {
  const auto peer = real_peer({"usual", "plain"});
  if (!peer) return;
  const auto backend = make_backend(default_backend(), {.threads = 2});
  for (const char* norm :
       {"layernorm", "layernorm{gain=false}", "layernorm_simple", "adanorm", "batchnorm",
        "groupnorm{groups=4}", "instancenorm", "weightnorm", "batchrenorm", "pn_v", "powernorm",
        "powernorm{mode=paper}", "mabn", "unifiednorm"}) {
    CAPTURE(std::string(norm));
    const NormBench b = bench_norm(*backend, norm, {8, 16, 20, 24}, 3, {peer.get()});
    CHECK(refusal_of(b.peer, "usual") == "");
    CHECK(refusal_of(b.peer, "plain") == "");
  }
  const NormBench b = bench_norm(*backend, "scalenorm", {8, 16}, 3, {peer.get()});
  CHECK(refusal_of(b.peer, "plain") == "scalenorm is composed as its formulas read already");
}

TEST_CASE("torch peer: what a mode needs and has not is its reason") {
  const auto peer = real_peer({"usual", "graph", "compiled", "compiled_graph"});
  if (!peer) return;
  const auto backend = make_backend(default_backend(), {.threads = 2});
  const StepBench b = bench_step(*backend, test::small_job(), 3, peer.get());
  CHECK(refusal_of(b.peer, "usual") == "");
  CHECK(refusal_of(b.peer, "graph") == "CUDA graphs need a GPU");
  CHECK(refusal_of(b.peer, "compiled_graph") != "");
  if (peer->version().starts_with("1.")) {
    CHECK(refusal_of(b.peer, "compiled") == "torch.compile needs PyTorch 2");
  }
}

TEST_CASE("torch peer: a softmax over many words has the same loss and gradients") {
  const auto peer = real_peer();
  if (!peer) return;
  const auto backend = make_backend(default_backend(), {.threads = 1});
  for (const std::vector<std::int64_t>& cutoffs : {std::vector<std::int64_t>{}, {40, 200}}) {
    const SoftmaxBench b = bench_softmax(
        *backend,
        {.words = 3000, .width = 20, .rows = 700, .cutoffs = cutoffs, .label_smoothing = 0.1}, 3,
        peer.get());
    CHECK(b.peer_refusal == "");
    REQUIRE(b.peer_bytes.size() == 1);
    // PyTorch has all of the logits at once.
    if (cutoffs.empty()) CHECK(b.peer_bytes[0] > 700 * 3000 * 4);
  }
}

}  // namespace
}  // namespace keel::bench
