// Subjects smaller than a model: every norm and every op alone, forward and backward.
#pragma once

#include <span>
#include <vector>

#include "frontend/compare/subject.h"
#include "frontend/nn/norm.h"

namespace keel::compare {

// A graph with inputs that are drawn anew every step.
class GraphSubject : public Subject {
 public:
  // Draws the inputs of a step.
  using Draw = std::function<Feeds(std::int64_t step)>;
  GraphSubject(std::string name, Graph graph, Draw draw, Feeds first_values = {})
      : name_(std::move(name)),
        graph_(std::move(graph)),
        draw_(std::move(draw)),
        first_values_(std::move(first_values)) {}

  const std::string& name() const override { return name_; }
  SubjectStep at(std::int64_t step) override { return {&graph_, draw_(step)}; }
  const Feeds& first_values() const override { return first_values_; }
  std::uint64_t seed() const override { return 1; }
  const Graph& graph() const { return graph_; }

 private:
  std::string name_;
  Graph graph_;
  Draw draw_;
  Feeds first_values_;
};

using Subjects = std::vector<std::unique_ptr<GraphSubject>>;

// A norm on tokens, on images and, where it takes a mask, on padded tokens, as far as it takes
// them: its forward, its backward for a drawn dy, and its state. Throws Error{kUsage} when it takes
// none.
Subjects norm_subjects(const nn::Norm& norm, bool unfused);

// An op by name, forward and backward; of an op that is a backward or an update, the subjects in
// which it runs. Throws Error{kUsage} for an unknown name, with the nearest known one.
Subjects op_subjects(std::string_view op, bool unfused);
// The names that op_subjects takes: every op but views.
std::vector<std::string> subject_ops();
// Whether it runs in no subject of another op or of a norm.
bool has_own_subject(const std::string& op);

}  // namespace keel::compare
