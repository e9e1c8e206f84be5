#include "frontend/train/shard_graph.h"

#include <algorithm>
#include <set>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/shard_parts.h"
#include "src/ops/stop_gradient.h"

namespace keel::train {
namespace {

bool is_column_norm(const Node& node) {
  return node.kind == NodeKind::kOp && keel::is_column_norm(*node.op);
}

void expect_shardable(const Graph& g, const TrainOptions& train) {
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    if (node.kind != NodeKind::kCarry) continue;
    check(train.shards == 1, ErrorKind::kUsage,
          "train.shards: expected 1 for a network that carries {} from batch to batch, got {}",
          node.name, train.shards);
    fail(
        ErrorKind::kUsage,
        "train.statistics: expected local with train.accumulate = {} for a network with norms over "
        "the batch that carries {} from batch to batch, got {}",
        train.accumulate, node.name, attr_text(train.statistics));
  }
}

// The net of a shard, whose norms share their statistics as the recipe says.
nn::Net shard_net(Graph& g, const Job& job, std::vector<nn::Monitor>* monitors) {
  const TrainOptions& train = job.train();
  nn::Net net = sampling_net(g, job, nn::Mode::kTrain);
  net.monitors = monitors;
  const bool shares = train.statistics == ShardStatistics::kSynchronised;
  net.shards = shares ? train.shards * train.accumulate : 1;
  return net;
}

std::string under(std::string_view prefix, const std::string& name) {
  return std::string(prefix) + name;
}

// The leaves of which every shard has the same next value or gradient: states of whole numbers and,
// if all shards share their statistics, the states, gains and biases of norms over the batch.
class WholeLeaves {
 public:
  WholeLeaves(const Graph& g, const TrainOptions& train)
      : shares_(train.statistics == ShardStatistics::kSynchronised) {
    for (int i = 0; shares_ && i < g.size(); ++i) {
      const Node& node = g.node(i);
      if (!is_column_norm(node)) continue;
      for (const std::string_view parameter : {"gain", "bias"}) {
        const int place = input_place(*node.op, parameter);
        if (place >= 0) names_.insert(name_of_leaf(g, node.inputs[std::size_t(place)]));
      }
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

// A gradient that is added up over more than one part of the run would be kept from part to part.
// Where its terms are few, as those of a table that source, target and logits share, each is summed
// over the shards by itself, and the update adds them up.
std::vector<Value> terms_of(const Graph& g, const PerNode<int>& part, Value gradient) {
  constexpr std::size_t kMostTerms = 4;
  std::vector<Value> terms{gradient};
  for (;;) {
    const Node& node = g.node(terms.front());
    const bool is_sum = node.op == &elementwise_op(EwCode::kAdd);
    if (!is_sum || part[node.inputs[0].node] == part[terms.front().node]) return terms;
    if (terms.size() == kMostTerms) return {gradient};
    terms.front() = node.inputs[1];
    terms.insert(terms.begin(), node.inputs[0]);
  }
}

std::string term_name(const std::string& output, std::size_t term) {
  return term == 0 ? output : fmt::format("{}+{}", output, term);
}

// The values that the update reads: parameters with their gradients, and the states' next values.
struct Given {
  std::vector<Value> parameters, gradients;
};

Given add_given(Graph& g, const Graph& shard) {
  Given given;
  const Value state_weight = g.input("state_weight", {DType::kF32, {}});
  for (int i = 0; i < shard.size(); ++i) {
    const Node& node = shard.node(i);
    if (node.kind != NodeKind::kParameter && node.kind != NodeKind::kState) continue;
    const std::string name = given_name(shard, node.name);
    if (name.empty()) continue;
    const Value leaf = leaf_like(g, node);
    Value input = g.input(name, node.outputs[0]);
    for (std::size_t term = 1; has_output(shard, term_name(name, term)); ++term) {
      input = ops::add(g, input, g.input(term_name(name, term), node.outputs[0]));
    }
    if (node.kind == NodeKind::kState) {
      const bool is_summed = name.starts_with(kSummed);
      g.mark_update(leaf,
                    is_summed ? ops::mul(g, input, state_weight) : ops::stop_gradient(g, input));
      continue;
    }
    given.parameters.push_back(leaf);
    given.gradients.push_back(input);
  }
  return given;
}

}  // namespace

bool shares_statistics(const Job& job) {
  Graph g;
  nn::Net net = shard_net(g, job, nullptr);
  if (net.shards == 1) return false;
  add_network(net, job.network(), job.network().sizes(job.train().batch));
  for (int i = 0; i < g.size(); ++i) {
    if (is_column_norm(g.node(i))) return true;
  }
  return false;
}

Graph build_shard(const Job& job, const task::Sizes& sizes, std::vector<nn::Monitor>* monitors) {
  Graph g;
  nn::Net net = shard_net(g, job, monitors);
  add_network(net, job.network(), sizes);
  expect_shardable(g, job.train());
  const Value loss = std::ranges::find(g.outputs(), "loss", &NamedValue::name)->value;
  const std::vector<Value> parameters = parameters_of(g);
  const Gradients gradients = differentiate(g, loss, parameters);
  net.update(gradients.states);
  const WholeLeaves whole(g, job.train());
  const PerNode<int> part = parts_of(g);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!gradients.of[i].valid()) continue;
    const std::string name = whole.output(g.node(parameters[i]));
    const bool is_summed = name.starts_with(kSummed);
    const std::vector<Value> terms =
        is_summed ? terms_of(g, part, gradients.of[i]) : std::vector{gradients.of[i]};
    for (std::size_t term = 0; term < terms.size(); ++term) {
      g.mark_output(term_name(name, term), terms[term]);
    }
  }
  for (const Update& update : g.take_updates()) {
    g.mark_output(whole.output(g.node(update.leaf)), update.next);
  }
  for (std::size_t i = 0; monitors && i < monitors->size(); ++i) {
    g.mark_output(monitor_output(i), (*monitors)[i].value);
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
    const Value nothing = ops::scale(g, loss, 0);  // or NaN: a sum of losses may overflow by itself
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
