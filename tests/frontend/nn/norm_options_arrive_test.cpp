// Every option of every norm, set away from its default, arrives in the graph that the norm builds,
// through every door: behind a linear layer and a convolution, over shards, with gains that are
// drawn, and in evaluation.
#include <sstream>

#include "frontend/nn/layers.h"
#include "frontend/nn/norm_table.h"
#include "src/autodiff/gradient.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/graph_text.h"

namespace keel::nn {
namespace {

struct Door {
  const char* name;
  Mode mode = Mode::kTrain;
  std::int64_t shards = 1;
  double gain_deviation = 0;
};
constexpr Door kTraining{.name = "training"};
constexpr Door kDoors[] = {{.name = "shards", .shards = 3},
                           {.name = "drawn gains", .gain_deviation = 0.5},
                           {.name = "evaluation", .mode = Mode::kEvaluate}};

using OptionPair = std::pair<std::string, std::string>;

std::vector<OptionPair> options_of(const Norm& norm) {
  std::vector<OptionPair> options;
  std::istringstream text(norm.options());
  for (std::string item; text >> item;) {
    const std::size_t equals = item.find('=');
    options.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return options;
}

// Another value of an option than `value`, which every norm permits on 12 features.
std::string another(const OptionPair& option) {
  const auto& [key, value] = option;
  if (value == "true") return "false";
  if (value == "false") return "true";
  if (key == "mode") return "paper";
  if (key == "padding") return value == "exact" ? "pn_code" : "exact";
  double number = 0;
  attr_parse(value, number);
  if (key == "m") return attr_text(std::int64_t(number) * 2);  // a power of two stays one
  // A whole number moves by 2: 1 group becomes 3, a divisor of the width.
  const bool is_whole = key == "axes" || key == "groups" || key == "heads" || key == "steps" ||
                        key == "warmup" || key == "clip_after";
  if (is_whole) return attr_text(std::int64_t(number) + 2);
  return attr_text(0 < number && number < 1 ? number / 2 : number * 1.5 + 0.25);
}

// A layer with its norm, forward and backward.
struct Built {
  std::string text;
  std::vector<std::string> attrs;  // "key=value", of all nodes

  std::int64_t count(const OptionPair& option) const {
    return std::ranges::count(attrs, option.first + "=" + option.second);
  }
};

Built build(const std::string& norm, const Shape& shape, const Door& door) {
  Graph graph;
  Net net{.graph = graph, .mode = door.mode};
  net.shards = door.shards;
  net.gain_deviation = door.gain_deviation;
  net.step = graph.input("step", {DType::kI32, {}});
  net.first_row = graph.input("first_row", {DType::kI32, {}});
  const Value x = graph.input("x", {DType::kF32, shape});
  const LayerOptions options{.norm = Norm::parse(norm)};
  const Value y = shape.rank() == 4
                      ? Conv2d(net, "layer", shape[1], {.channels = 12, .window = 1}, options)(x)
                      : Linear(net, "layer", shape.back(), 12, options)(x);
  const Value loss = ops::sum(graph, ops::mul(graph, y, y));
  differentiate(graph, loss, graph.leaves(NodeKind::kParameter), Unreached::kZero);
  Built built{test::graph_text(graph), {}};
  for (int i = 0; i < graph.size(); ++i) {
    if (!graph.node(i).op) continue;
    std::istringstream items(graph.node(i).attrs.text());
    for (std::string item; items >> item;) built.attrs.push_back(item);
  }
  return built;
}

// The option's prefix: the gain or the bias that it is the first value of.
std::string before(const std::string& norm, const std::string& option) {
  for (const std::string part : {"gain", "bias"}) {
    const bool is_there = !Norm::parse(norm).option(part).empty();
    if (is_there && option == part + "_init") return part + "=true,";
  }
  return "";
}

// Checks one option on inputs of one shape. Returns whether it changes the graph of training.
bool check_option(const NormFacts& facts, const OptionPair& option, const Shape& shape) {
  const OptionPair changed{option.first, another(option)};
  const std::string front = before(facts.name, option.first),
                    usual = facts.any_width(front.substr(0, front.rfind(','))),
                    text = changed.first + "=" + changed.second;
  const std::string other = facts.every_width.starts_with(option.first + "=")
                                ? fmt::format("{}{{{}}}", facts.name, text)
                                : facts.any_width(front + text);
  CAPTURE(shape.text());
  CAPTURE(other);
  const Built first = build(usual, shape, kTraining), second = build(other, shape, kTraining);
  const bool acts = first.text != second.text;
  if (first.count(option) > 0) CHECK(second.count(changed) > 0);
  for (const Door& door : kDoors) {
    CAPTURE(std::string(door.name));
    const Built here = build(usual, shape, door), there = build(other, shape, door);
    // An attribute of the same name takes the value; others show that they follow.
    if (here.count(option) > 0) CHECK(there.count(changed) > 0);
    if (acts && door.mode == Mode::kTrain) CHECK(here.text != there.text);
  }
  return acts;
}

TEST_CASE("norm options: every option of every norm arrives, through every door") {
  for (const NormFacts& facts : norm_facts()) {
    for (OptionPair option : options_of(Norm::parse(facts.any_width()))) {
      CAPTURE(facts.name);
      CAPTURE(option.first);
      try {
        const std::string front = before(facts.name, option.first);
        Norm::parse(facts.name + "{" + front + option.first + "=" + another(option) + "}");
      } catch (const Error& error) {
        // The name stands for one value of this option.
        CHECK(std::string(error.what()).find("for which the name stands") != std::string::npos);
        continue;
      }
      bool acts = false;
      for (const Shape& shape : {Shape{6, 5}, Shape{2, 3, 5}, Shape{2, 5, 2, 2}}) {
        const bool takes = !(facts.name == "instancenorm" && shape.rank() == 2) &&
                           !(option.first == "heads" && shape.rank() == 4);
        if (takes) acts |= check_option(facts, option, shape);
      }
      // The steps of a recurrent norm show only in a network of more steps.
      if (option.first == "steps") {
        const Norm norm = Norm::parse(facts.name + "{steps=" + another(option) + "}");
        acts |= norm.steps() != Norm::parse(facts.name).steps();
      }
      CHECK(acts);
    }
  }
}

}  // namespace
}  // namespace keel::nn
