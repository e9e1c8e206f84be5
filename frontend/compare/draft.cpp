#include "frontend/compare/draft.h"

#include <cmath>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::compare {
namespace {

constexpr std::uint64_t kDrawSeed = 42;

}  // namespace

Value Draft::add(Drawn drawn, const TensorType& type, std::int64_t below) {
  const std::string name = fmt::format("in{}", sources_.size());
  sources_.push_back({name, type, drawn, below});
  const Value v = graph.input(name, type);
  if (is_floating(type.dtype)) floating_.push_back(v);
  return v;
}

Tensor Draft::draw(const Source& source, std::int64_t step) {
  Tensor numbers(DType::kF64, source.type.shape);
  const Philox random(kDrawSeed, stream_of(source.name), static_cast<std::uint32_t>(step));
  const std::int64_t width = source.type.shape.rank() > 0 ? source.type.shape.back() : 1;
  std::uint64_t e = 0;
  for (double& v : numbers.as<double>()) {
    const std::int64_t row = std::int64_t(e) / width, place = std::int64_t(e) % width;
    switch (source.drawn) {
      case Drawn::kNormal:
        v = random.normal(e);
        break;
      case Drawn::kPositive:
        v = 0.5 + std::abs(random.normal(e));
        break;
      case Drawn::kBelow:
        v = random.below(e, static_cast<std::uint32_t>(source.below));
        break;
      case Drawn::kMask:
        v = row % 2 == 0 || place < width - width / 3 ? 1 : 0;
        break;
      case Drawn::kStep:
        v = double(step);
        break;
    }
    ++e;
  }
  return numbers.to(source.type.dtype);
}

void Draft::mark(const std::vector<Value>& outputs) {
  for (Value v : outputs) graph.mark_output(fmt::format("y{}", graph.outputs().size()), v);
}

std::vector<Update> Draft::differentiate(const std::vector<Value>& outputs,
                                         std::span<const Value> parameters) {
  std::vector<Value> wrt = floating_;
  wrt.insert(wrt.end(), parameters.begin(), parameters.end());
  mark(outputs);
  Value loss;
  for (Value y : outputs) {
    if (!is_floating(graph.type(y).dtype)) continue;
    const Value term = ops::sum(graph, ops::mul(graph, y, normal(graph.shape(y))));
    loss = loss.valid() ? ops::add(graph, loss, term) : term;
  }
  const Gradients gradients = keel::differentiate(graph, loss, wrt, Unreached::kZero);
  mark({loss});
  mark(gradients.of);
  return gradients.states;
}

std::unique_ptr<GraphSubject> Draft::finish(std::string name, bool unfused, Feeds first_values) {
  const auto draws = [sources = std::move(sources_)](std::int64_t step) {
    Feeds feeds;
    for (const Source& source : sources) feeds[source.name] = draw(source, step);
    return feeds;
  };
  return std::make_unique<GraphSubject>(std::move(name), compared_graph(graph, unfused), draws,
                                        std::move(first_values));
}

}  // namespace keel::compare
