#include "frontend/train/evaluator.h"

#include "frontend/train/step_graph.h"
#include "src/runtime/scalars.h"

namespace keel::train {
namespace {

constexpr std::int64_t kBatch = 256;

}  // namespace

Program& Evaluator::program(std::int64_t batch) {
  auto& slot = programs_[batch];
  if (!slot) {
    slot = std::make_unique<Program>(backend_, variables_, build_evaluate(config_, batch));
  }
  return *slot;
}

void Evaluator::declare() { variables_.declare(build_evaluate(config_, 1)); }

Evaluation Evaluator::run(const data::Dataset& dataset) {
  data::Batcher batcher(dataset.rows(), {.batch = kBatch, .shuffle = false, .keep_partial = true});
  const auto inputs = config_.model().inputs();
  Feeder full(inputs, dataset, kBatch), last(inputs, dataset, dataset.rows() % kBatch);
  Scalars results(backend_, 2 * batcher.steps());
  for (std::int64_t step = 0; step < batcher.steps(); ++step) {
    const auto rows = batcher.rows(0, step);
    Program& p = program(std::int64_t(rows.size()));
    (std::int64_t(rows.size()) == kBatch ? full : last).feed(p, rows);
    p.run();
    results.send(p, "loss");
    results.send(p, "errors");
  }
  Evaluation total{.rows = dataset.rows()};
  for (std::int64_t step = 0; step < batcher.steps(); ++step) {
    const auto rows = std::min(kBatch, dataset.rows() - step * kBatch);
    total.loss += results.at(2 * step) * double(rows);
    total.error += results.at(2 * step + 1);
  }
  total.loss /= double(total.rows);
  total.error /= double(total.rows);
  return total;
}

}  // namespace keel::train
