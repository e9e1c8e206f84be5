// A graph under construction, with inputs that say how they are sampled.
#pragma once

#include <string>
#include <vector>

#include "frontend/compare/cases/layer_subjects.h"
#include "frontend/compare/cases/sampled.h"

namespace keel::compare {

class CaseBuilder {
 public:
  Graph graph;

  Value normal(const Shape& shape) { return add(Sampled::kNormal, {DType::kF32, shape}); }
  Value positive(const Shape& shape) { return add(Sampled::kPositive, {DType::kF32, shape}); }
  Value below(const Shape& shape, std::int64_t n) {
    return add(Sampled::kBelow, {DType::kI32, shape}, n);
  }
  Value mask(const Shape& shape) { return add(Sampled::kMask, {DType::kU8, shape}); }
  Value step() { return add(Sampled::kStep, {DType::kI32, {}}); }
  // An input of numbers of any of the floating-point kinds.
  Value floats(Sampled sampled, const Shape& shape) { return add(sampled, {DType::kF32, shape}); }
  // The same as f64, for sums that are not rounded yet.
  Value doubles(Sampled sampled, const Shape& shape) { return add(sampled, {DType::kF64, shape}); }

  // Differentiates the sum of <y, dy> over floating-point values y, where each dy is sampled, by
  // every floating-point input so far, and marks all of it as outputs. Returns the new values that
  // the backward gives to states.
  std::vector<Update> differentiate(const std::vector<Value>& outputs,
                                    std::span<const Value> parameters = {});
  void mark(const std::vector<Value>& outputs);

  // The finished graph; the builder is empty after that.
  std::unique_ptr<GraphSubject> finish(LayerName name, const LayerForm& form,
                                       Feeds first_values = {});

 private:
  Value add(Sampled sampled, const TensorType& type, std::int64_t below = 0);

  std::vector<Source> sources_;
  std::vector<Value> floating_;
};

}  // namespace keel::compare
