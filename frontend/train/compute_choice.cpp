#include "frontend/train/compute_choice.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "frontend/train/step_graph.h"
#include "src/ops/conv2d.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/passes/narrow_products.h"
#include "src/runtime/program.h"

namespace keel::train {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool is_product(const Node& node) {
  return node.op == &kMatmul || node.op == &kConv2d || node.op == &kConv2dBackwardInput ||
         node.op == &kConv2dBackwardWeight;
}

// The node alone, with its floating inputs as inputs of the graph; the first two in that type.
Graph alone(const Graph& graph, const Node& node, DType factors) {
  Graph g;
  std::vector<Value> inputs;
  for (const Value v : node.inputs) {
    TensorType type = v.valid() ? graph.type(v) : TensorType{};
    if (inputs.size() < 2) type.dtype = factors;
    inputs.push_back(v.valid() ? g.input(fmt::format("x{}", inputs.size()), type) : Value{});
  }
  g.mark_output("y", g.add(*node.op, inputs, node.attrs));
  return g;
}

// The median of some runs of a graph, after one that wakes caches and threads.
double seconds_of(Backend& backend, const Graph& graph) {
  constexpr int kLeastRuns = 5, kMostRuns = 50;
  constexpr double kEnough = 0.02;
  Variables variables(backend, 1);
  Program program(backend, variables, graph, {.optimize = false});
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

// Op, attributes and shapes: what the time of a product depends on.
std::string kind_of(const Graph& graph, const Node& node) {
  std::string text = fmt::format("{} {}", node.op->name, node.attrs.text());
  for (const Value v : node.inputs) text += v.valid() ? graph.shape(v).text() : "-";
  return text;
}

ProductTimes measure(Backend& backend, const Graph& graph, const Node& node) {
  const double narrow = seconds_or_never(backend, alone(graph, node, DType::kBF16));
  return {narrow == kNever ? 0 : seconds_of(backend, alone(graph, node, DType::kF32)), narrow};
}

// Elements that the step casts to bf16.
std::int64_t cast_elements(const Graph& narrow) {
  std::int64_t elements = 0;
  for (int i = 0; i < narrow.size(); ++i) {
    const Node& node = narrow.node(i);
    const bool is_cast = node.op == &elementwise_op(EwCode::kCast);
    if (is_cast && node.outputs[0].dtype == DType::kBF16) {
      elements += node.outputs[0].shape.elements();
    }
  }
  return elements;
}

// Of a tensor of middling size.
constexpr std::int64_t kCastElements = 1 << 19;
ProductTimes measure_cast(Backend& backend) {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {kCastElements}});
  g.mark_output("y", ops::cast(g, x, DType::kBF16));
  return {0, seconds_or_never(backend, g)};
}

bool read_number(std::string_view text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number >= 0;
}

}  // namespace

KeptTimes::KeptTimes(std::filesystem::path file, std::string machine)
    : file_(std::move(file)), machine_(std::move(machine)) {
  std::ranges::replace(machine_, '\t', ' ');
  std::ifstream in(file_);
  constexpr std::int64_t kMostLines = 100'000;
  std::string line;
  for (std::int64_t n = 0; n < kMostLines && std::getline(in, line); ++n) {
    const std::size_t last = line.rfind('\t');
    const std::size_t first =
        last == 0 || last == std::string::npos ? last : line.rfind('\t', last - 1);
    if (first == std::string::npos || last == std::string::npos || first == last) continue;
    const std::string_view text(line);
    ProductTimes times;
    if (read_number(text.substr(first + 1, last - first - 1), times.f32) &&
        read_number(text.substr(last + 1), times.bf16)) {
      times_[line.substr(0, first)] = times;
    }
  }
}

ProductTimes KeptTimes::of(const std::string& product,
                           const std::function<ProductTimes()>& measure) {
  const std::string what = machine_ + ", " + product;
  const auto known = times_.find(what);
  if (known != times_.end()) return known->second;
  const ProductTimes times = times_[what] = measure();
  if (file_.empty()) return times;
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  std::ofstream(file_, std::ios::app) << fmt::format("{}\t{}\t{}\n", what, times.f32, times.bf16);
  return times;
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

ProductTimes measure_products(Backend& backend, const Job& job, KeptTimes& kept) {
  const TrainOptions& train = job.train();
  const auto sizes = job.network().sizes(std::max<std::int64_t>(train.batch / train.shards, 1));
  const Graph step = build_step(job, sizes);
  const Graph run = optimized_for(backend, step);
  ProductTimes total;
  for (int i = 0; i < run.size(); ++i) {
    const Node& node = run.node(i);
    if (node.kind != NodeKind::kOp || !is_product(node)) continue;
    if (run.type(node.inputs[0]).dtype != DType::kF32) continue;
    const ProductTimes one =
        kept.of(kind_of(run, node), [&] { return measure(backend, run, node); });
    total.f32 += one.f32;
    total.bf16 += one.bf16;
  }
  const ProductTimes cast = kept.of("cast", [&] { return measure_cast(backend); });
  const double share = double(cast_elements(narrow_products(step))) / double(kCastElements);
  total.bf16 += share > 0 ? cast.bf16 * share : 0;
  return total;
}

}  // namespace keel::train
