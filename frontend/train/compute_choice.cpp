#include "frontend/train/compute_choice.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "frontend/train/step_graph.h"
#include "src/ops/elementwise.h"
#include "src/ops/linear_cross_entropy.h"
#include "src/ops/matmul.h"
#include "src/passes/bf16_products.h"
#include "src/runtime/program.h"

namespace keel::train {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The node alone, with its inputs as inputs of the graph.
Graph alone(const Graph& graph, const Node& node) {
  Graph g;
  std::vector<Value> inputs;
  for (const Value v : node.inputs) {
    const std::string name = fmt::format("x{}", inputs.size());
    inputs.push_back(v.valid() ? g.input(name, graph.type(v)) : Value{});
  }
  g.mark_output("y", g.add(*node.op, inputs, node.attrs));
  return g;
}

// Masks are full, so that attention has work to do.
void show_all(Program& program, const Node& node) {
  const TensorType& type = node.outputs[0];
  if (node.kind != NodeKind::kInput || type.dtype != DType::kU8) return;
  const std::vector<std::uint8_t> ones(std::size_t(type.shape.elements()), 1);
  program.feed(node.name, Tensor::of<std::uint8_t>(type.shape, ones));
}

// The median of some runs of a graph, after one that wakes caches and threads.
double seconds_of(Backend& backend, const Graph& graph) {
  constexpr int kLeastRuns = 5, kMostRuns = 50;
  constexpr double kEnough = 0.02;
  Variables variables(backend, 1);
  Program program(backend, variables, graph, {.optimize = false});
  for (int i = 0; i < graph.size(); ++i) show_all(program, graph.node(i));
  program.run();
  std::vector<double> times;
  for (double total = 0; int(times.size()) < kMostRuns; total += times.back()) {
    if (total > kEnough && int(times.size()) >= kLeastRuns) break;
    times.push_back(backend.seconds([&] { program.run(); }));
  }
  std::ranges::nth_element(times, times.begin() + std::ptrdiff_t(times.size() / 2));
  return times[times.size() / 2];
}

double seconds_or_never(Backend& backend, const Graph& graph) {
  try {
    return seconds_of(backend, graph);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kBackendMissing) return kNever;
    throw;
  }
}

// Op, attributes, type of the factors and shapes: what the time of a product depends on.
std::string kind_of(const Graph& graph, const Node& node) {
  const auto factors = name_of(graph.type(node.inputs[0]).dtype);
  std::string text = fmt::format("{} {} {} ", node.op->name, node.attrs.text(), factors);
  for (const Value v : node.inputs) text += v.valid() ? graph.shape(v).text() : "-";
  return text;
}

// The time of all products of a graph that is ready to run.
double seconds_of_products(Backend& backend, const Graph& graph, KeptTimes& kept) {
  double seconds = 0;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    // In float32 the loss over words may be one node with its backward.
    const bool multiplies = !factors_of(node).empty() || node.op == &kLinearCrossEntropyStep;
    if (node.kind != NodeKind::kOp || !multiplies) continue;
    seconds += kept.of(kind_of(graph, node),
                       [&] { return seconds_or_never(backend, alone(graph, node)); });
  }
  return seconds;
}

constexpr std::int64_t kCastElements = 1 << 19;  // a tensor of middling size
double seconds_of_cast(Backend& backend, DType from, DType to) {
  Graph g;
  g.mark_output("y", ops::cast(g, g.input("x", {from, {kCastElements}}), to));
  return seconds_or_never(backend, g);
}

// The time of the casts to and from bf16 that are still nodes of a step.
double seconds_of_casts(Backend& backend, const Graph& narrow, KeptTimes& kept) {
  double seconds = 0;
  for (int i = 0; i < narrow.size(); ++i) {
    const Node& node = narrow.node(i);
    if (node.op != &elementwise_op(EwCode::kCast)) continue;
    const DType from = narrow.type(node.inputs[0]).dtype, to = node.outputs[0].dtype;
    if (from != DType::kBF16 && to != DType::kBF16) continue;
    const std::string kind = fmt::format("cast {} {}", name_of(from), name_of(to));
    const double time = kept.of(kind, [&] { return seconds_of_cast(backend, from, to); });
    seconds += time * double(node.outputs[0].shape.elements()) / double(kCastElements);
  }
  return seconds;
}

bool read_number(std::string_view text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(number) &&
         number > 0;
}

}  // namespace

KeptTimes::KeptTimes(std::filesystem::path file, std::string machine)
    : file_(std::move(file)), machine_(std::move(machine)) {
  std::ranges::replace(machine_, '\t', ' ');
  std::error_code ignored;
  check(
      !std::filesystem::exists(file_, ignored) || std::filesystem::is_regular_file(file_, ignored),
      ErrorKind::kIo, "{}: expected a regular file, which keeps the times of products",
      file_.string());
  std::ifstream in(file_);
  constexpr std::int64_t kMostLines = 100'000;
  std::string line;
  for (std::int64_t n = 0; n < kMostLines && std::getline(in, line); ++n) {
    const std::size_t tab = line.rfind('\t');
    double seconds = 0;
    if (tab == std::string::npos || !read_number(line.substr(tab + 1), seconds)) continue;
    times_[line.substr(0, tab)] = seconds;
  }
}

double KeptTimes::of(const std::string& kind, const std::function<double()>& measure) {
  const std::string what = machine_ + ", " + kind;
  const auto known = times_.find(what);
  if (known != times_.end()) return known->second;
  const double seconds = times_[what] = measure();
  if (file_.empty() || !std::isfinite(seconds) || seconds <= 0) return seconds;
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  std::ofstream(file_, std::ios::app) << fmt::format("{}\t{}\n", what, seconds);
  return seconds;
}

std::filesystem::path kept_times_file() {
  const auto folder = [](const char* variable) {
    const char* value = std::getenv(variable);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  if (const auto own = folder("KEEL_CACHE"); !own.empty()) return own / "compute.txt";
  if (const auto caches = folder("XDG_CACHE_HOME"); !caches.empty()) {
    return caches / "keel" / "compute.txt";
  }
  const auto home = folder("HOME");
  return home.empty() ? home : home / ".cache" / "keel" / "compute.txt";
}

bool takes_bf16(Backend& backend) {
  Graph g;
  const Value x = g.input("x", {DType::kBF16, {2, 2}});
  const Value y = ops::matmul(g, x, x);
  return backend.prepare({g, g.node(y)}).refusal.empty();
}

ProductTimes measure_products(Backend& backend, Job& job, KeptTimes& kept) {
  job.choose(Compute::kF32);
  if (!takes_bf16(backend)) return {0, kNever};
  const TrainOptions& train = job.train();
  const auto sizes = job.network().sizes(std::max<std::int64_t>(train.batch / train.shards, 1));
  const Graph step = build_step(job, sizes);
  const Graph narrow = optimized_for(backend, bf16_products(step));
  return {seconds_of_products(backend, optimized_for(backend, step), kept),
          seconds_of_products(backend, narrow, kept) + seconds_of_casts(backend, narrow, kept)};
}

}  // namespace keel::train
