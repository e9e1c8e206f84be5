#include "frontend/train/shard_graph.h"

#include <algorithm>
#include <array>
#include <set>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/stop_gradient.h"

namespace keel::train {
namespace {

bool is_column_norm(const Node& node) {
  constexpr std::array kNorms = {&kBatchNorm, &kBatchRenorm, &kPnV, &kPowerNorm, &kMabn};
  return std::ranges::find(kNorms, node.op) != kNorms.end();
}

void expect_shardable(const Graph& g, const TrainOptions& train) {
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    check(node.kind != NodeKind::kCarry, ErrorKind::kUsage,
          "train.shards: expected 1 for a network that carries {} from batch to batch, got {}",
          node.name, train.shards);
    const bool is_local = train.statistics == ShardStatistics::kLocal;
    check(is_local || train.accumulate == 1 || !is_column_norm(node), ErrorKind::kUsage,
          "train.statistics: expected local with train.accumulate = {}, because of {}, got {}",
          train.accumulate, node.name, attr_text(train.statistics));
  }
}

std::string under(std::string_view prefix, const std::string& name) {
  return std::string(prefix) + name;
}

// Every norm of columns has them here.
constexpr int kGain = BatchNormInput::kGain, kBias = BatchNormInput::kBias;
static_assert(int{PowerNormInput::kGain} == kGain && int{PowerNormInput::kBias} == kBias);
static_assert(int{MabnInput::kGain} == kGain && int{MabnInput::kBias} == kBias);
static_assert(int{PnVInput::kGain} == kGain && int{PnVInput::kBias} == kBias);
static_assert(int{BatchRenormInput::kGain} == kGain && int{BatchRenormInput::kBias} == kBias);

// The leaves of which every shard has the same next value or gradient: states of whole numbers and,
// if all shards share their statistics, the states, gains and biases of norms over the batch.
class WholeLeaves {
 public:
  WholeLeaves(const Graph& g, const TrainOptions& train)
      : shares_(train.statistics == ShardStatistics::kSynchronised) {
    for (int i = 0; shares_ && i < g.size(); ++i) {
      const Node& node = g.node(i);
      if (!is_column_norm(node)) continue;
      names_.insert(name_of_leaf(g, node.inputs[kGain]));
      names_.insert(name_of_leaf(g, node.inputs[kBias]));
    }
  }
  std::string output(const Node& leaf) const {
    const bool is_summed = is_floating(leaf.outputs[0].dtype) &&
                           !(shares_ && leaf.kind == NodeKind::kState) &&
                           !names_.contains(leaf.name);
    return under(is_summed ? kSummed : kWhole, leaf.name);
  }

 private:
  static std::string name_of_leaf(const Graph& g, Value v) {
    return v.valid() ? g.node(v).name : "";
  }

  bool shares_;
  std::set<std::string> names_;
};

Value leaf_like(Graph& g, const Node& leaf) {
  if (leaf.kind == NodeKind::kParameter) {
    return g.parameter(leaf.name, leaf.outputs[0], leaf.initializer, leaf.facts);
  }
  return g.state(leaf.name, leaf.outputs[0], leaf.initializer, leaf.bounds);
}

bool has_output(const Graph& g, const std::string& name) {
  return std::ranges::find(g.outputs(), name, &NamedValue::name) != g.outputs().end();
}

// The name under which a shard gives what belongs to a leaf; empty: it gives nothing.
std::string given_name(const Graph& shard, const std::string& leaf) {
  for (const std::string_view prefix : {kSummed, kWhole}) {
    if (has_output(shard, under(prefix, leaf))) return under(prefix, leaf);
  }
  return "";
}

// What the update reads: parameters with their gradients, and the states' next values.
struct Given {
  std::vector<Value> parameters, gradients;
};

Given add_given(Graph& g, const Graph& shard) {
  Given given;
  const Value share = g.input("share", {DType::kF32, {}});
  for (int i = 0; i < shard.size(); ++i) {
    const Node& node = shard.node(i);
    if (node.kind != NodeKind::kParameter && node.kind != NodeKind::kState) continue;
    const std::string name = given_name(shard, node.name);
    if (name.empty()) continue;
    const Value leaf = leaf_like(g, node);
    const Value input = g.input(name, node.outputs[0]);
    if (node.kind == NodeKind::kState) {
      const bool is_summed = name.starts_with(kSummed);
      g.mark_update(leaf, is_summed ? ops::mul(g, input, share) : ops::stop_gradient(g, input));
      continue;
    }
    given.parameters.push_back(leaf);
    given.gradients.push_back(input);
  }
  return given;
}

}  // namespace

Graph build_shard(const Job& job, const task::Sizes& sizes, std::vector<nn::Watch>* watches) {
  Graph g;
  nn::Net net = drawing_net(g, job, nn::Mode::kTrain);
  net.watches = watches;
  const bool shares = job.train().statistics == ShardStatistics::kSynchronised;
  net.shards = shares ? job.train().shards : 1;
  add_network(net, job.network(), sizes);
  expect_shardable(g, job.train());
  const Value loss = std::ranges::find(g.outputs(), "loss", &NamedValue::name)->value;
  const std::vector<Value> parameters = parameters_of(g);
  const Gradients gradients = differentiate(g, loss, parameters);
  net.update(gradients.states);
  const WholeLeaves whole(g, job.train());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (gradients.of[i].valid()) {
      g.mark_output(whole.output(g.node(parameters[i])), gradients.of[i]);
    }
  }
  for (const Update& update : g.take_updates()) {
    g.mark_output(whole.output(g.node(update.leaf)), update.next);
  }
  for (std::size_t i = 0; watches && i < watches->size(); ++i) {
    g.mark_output(watch_output(i), (*watches)[i].value);
  }
  return computed(std::move(g), job.train());
}

Graph build_update(const Job& job, const Graph& shard) {
  Graph g;
  const TrainOptions& train = job.train();
  const Given given = add_given(g, shard);
  optim::Clipped clipped = optim::clip_gradients(g, given.gradients, train.clip_options());
  const Value loss = g.input("loss", {DType::kF32, {}});
  if (train.skips()) {
    const Value nothing = ops::scale(g, loss, 0);  // or NaN: a sum of losses may overflow alone
    clipped.scale = ops::add(g, clipped.scale, nothing);
    g.mark_output("guard", ops::add(g, clipped.norm, nothing));
  }
  const optim::StepInputs inputs{g.input("lr", {DType::kF32, {}}), clipped.scale,
                                 g.input("step", {DType::kI32, {}})};
  optim::apply_optimizer(g, given.parameters, clipped.gradients, inputs, train.optimizer_options());
  g.mark_output("grad_norm", clipped.norm);
  return g;
}

}  // namespace keel::train
