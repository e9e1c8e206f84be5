// Subjects smaller than a model: every norm and every op alone, forward and backward.
#pragma once

#include <span>
#include <vector>

#include "frontend/compare/walk/subject.h"
#include "frontend/nn/norm.h"

namespace keel::compare {

// Such as "norm batchnorm" on "images".
struct LayerName {
  std::string layer, input_case;
};

// A graph with inputs that are sampled again in every step.
class GraphSubject : public Subject {
 public:
  // Draws the inputs of a step.
  using Draw = std::function<Feeds(std::int64_t step)>;
  GraphSubject(LayerName name, Graph graph, Draw draw, Feeds first_values = {})
      : name_(name.layer + ", " + name.input_case),
        input_case_(std::move(name.input_case)),
        graph_(std::move(graph)),
        draw_(std::move(draw)),
        first_values_(std::move(first_values)) {}

  const std::string& name() const override { return name_; }
  SubjectStep at(std::int64_t step) override { return {&graph_, draw_(step)}; }
  const Feeds& first_values() const override { return first_values_; }
  std::uint64_t seed() const override { return 1; }
  const Graph& graph() const { return graph_; }
  // The name of the input, which tells the subject from others of the same layer.
  const std::string& input_case() const { return input_case_; }

 private:
  std::string name_, input_case_;
  Graph graph_;
  Draw draw_;
  Feeds first_values_;
};

using Subjects = std::vector<std::unique_ptr<GraphSubject>>;

// Small cases take no time and are in all tests. Large ones exceed the amounts that kernels handle
// at a time (blocks of rows and of columns, tiles, registers, 4,096 rows), each with a remainder,
// and have difficult numbers (frontend/compare/cases/sampled.h).
enum class CaseSize { kSmall, kLarge };

// The graph of a layer: without the passes, and in which types. With `is_narrow` the factors of
// products are bf16 (src/passes/bf16_products.h), and so are x, dy, y and dx of norms
// (narrow_norms.h).
struct LayerForm {
  bool unfused = false;
  CaseSize size = CaseSize::kSmall;
  bool is_narrow = false;
};
// Whether anything is bf16 in the graph of a layer.
bool has_bf16(const Graph& graph);

// A norm on tokens, on images and, if it takes a mask, on padded tokens, as far as it takes them:
// its forward, its backward for a sampled dy, and its state. Throws Error{kUsage} if it takes none
// of these inputs.
Subjects norm_subjects(const nn::Norm& norm, const LayerForm& form = {});

// An op by name, forward and backward, in a case called "small" or "large"; for a backward or an
// update, the subjects that contain it. Throws Error{kUsage} for an unknown name, with the nearest
// known one.
Subjects op_subjects(std::string_view op, const LayerForm& form = {});
// The case of n elements of an op that has one (op_cases.h).
std::unique_ptr<GraphSubject> sized_subject(const std::string& op, std::int64_t n);
// The names that op_subjects takes: every op but views.
std::vector<std::string> subject_ops();
// Whether the op is in no subject of another op or of a norm.
bool has_own_subject(const std::string& op);

}  // namespace keel::compare
