// A training on one backend, step by step, whose weights can be read, set and moved a little.
#pragma once

#include <map>
#include <memory>

#include "frontend/compare/walk/model_subject.h"
#include "src/runtime/program.h"

namespace keel::compare {

// Everything that one step leaves to the next: parameters, states, and carries, as stored.
struct TrainingState {
  std::map<std::string, Tensor> variables, carries;
};

class RaceRunner {
 public:
  RaceRunner(Backend& backend, ModelSubject& subject);

  // Starts with the subject's first values.
  void begin(const SubjectStep& first);
  // Moves every element of every parameter to the next float32, up or down by a coin.
  void perturb(std::uint32_t coin);
  // Returns the loss.
  double run(const SubjectStep& step);

  TrainingState state() const;
  // Continues from a state, which may be that of another backend.
  void set(const TrainingState& state, const SubjectStep& next);

  const Variables& variables() const { return variables_; }
  // |w - w'| / |w'| over all parameters, where w' are those of the other run.
  double distance(const RaceRunner& other) const;

 private:
  Program& program_of(const SubjectStep& step);

  Backend& backend_;
  ModelSubject& subject_;
  Variables variables_;
  Carries carries_;
  std::map<const Graph*, std::unique_ptr<Program>> programs_;
};

}  // namespace keel::compare
