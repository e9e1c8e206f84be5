#include "bench/step_peer.h"

#include "bench/step_bench.h"
#include "frontend/train/step_graph.h"

namespace keel::bench {
namespace {

using nlohmann::json;

// The norm of a model that has one, as the model reads its options.
nn::Norm norm_of(const task::OptionValues& options) {
  std::string norm = "none", defaults;
  for (const auto& [name, value] : options) {
    if (name == "norm") norm = value;
    if (name == "batchnorm_options") defaults = value;
  }
  return nn::Norm::parse(norm, norm.starts_with("batchnorm") ? defaults : "");
}

json optimizer_facts(const train::TrainOptions& t) {
  return {{"name", choice_text(t.optimizer)},
          {"lr", kLearningRate},
          {"momentum", t.momentum},
          {"nesterov", t.nesterov},
          {"weight_decay", t.weight_decay},
          {"beta1", t.beta1},
          {"beta2", t.beta2},
          {"eps", t.eps}};
}

// Null without clipping.
json clip_limit(const optim::ClipOptions& clip) {
  return clip.kind == optim::Clipping::kGlobal ? json(clip.limit) : json();
}

json facts(const train::Job& job) {
  const task::OptionValues options = job.task().options();
  return {{"model", job.task().name()},
          {"options", std::map<std::string, std::string>(options.begin(), options.end())},
          {"norm", norm_facts(norm_of(options))},
          {"optimizer", optimizer_facts(job.train())},
          {"clip_limit", clip_limit(job.train().clip_options())}};
}

}  // namespace

PeerCase step_case(Backend& backend, const train::Job& job) {
  const optim::Clipping clip = job.train().clip;
  const bool knows_clip = clip == optim::Clipping::kNone || clip == optim::Clipping::kGlobal;
  check(knows_clip && job.train().accumulate == 1, ErrorKind::kUsage,
        "peer: expected train.clip=none or global and train.accumulate=1, got {} and {}",
        choice_text(clip), job.train().accumulate);
  PeerCase task{
      .what = facts(job), .given = {}, .expected = {}, .is_narrow = job.train().is_narrow()};
  const task::Sizes sizes = TypicalBatch(job).batch.sizes;
  Graph graph = train::build_step(job, sizes);
  const auto inputs = job.network().inputs(sizes);
  for (const task::Input& input : inputs) {
    graph.mark_output(input.name, graph.find_leaf(input.name));
  }
  Variables variables(backend, 1);
  variables.declare(graph);
  for (const auto& [name, variable] : variables.all()) {
    if (variable.kind != NodeKind::kParameter) continue;
    task.given.push_back({name, variables.read(name), true});
  }
  Program step(backend, variables, graph, {.guard = "grad_norm"});
  feed_batch(step, job);
  step.run();
  for (const task::Input& input : inputs) {
    task.given.push_back({input.name, step.fetch(input.name)});
  }
  for (const char* name : {"loss", "grad_norm"}) {
    task.expected.push_back({name, probe(step.fetch(name))});
  }
  return task;
}

}  // namespace keel::bench
