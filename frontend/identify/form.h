// The forms that norms have: a name of keel's with options, and how a program may hold its gain.
#pragma once

#include <vector>

#include "frontend/identify/given.h"

namespace keel::identify {

// An option as keel has it, "eps" and "1e-05".
using Option = std::pair<std::string, std::string>;

struct Form {
  std::string norm;             // "layernorm"
  std::vector<Option> options;  // those that the form chooses; all others have their defaults
  bool adds_one = false;        // y is formed with gain + 1
  bool evaluates = false;       // statistics are those of the states before
  bool by_step = false;         // x (samples, steps, features): each step has its own statistics
  bool by_channel = false;      // x (samples, channels, steps), as PyTorch's GroupNorm takes it

  // "layernorm{eps=1e-05,unbiased=true}", as nn::Norm::parse reads it.
  std::string text() const;
  std::string option(const std::string& name) const;  // its value, or ""
  void set(const std::string& name, std::string value);
};

// The arrays as forms take them: as they were given, with a row for each pixel of images
// (per_pixel), or as images of one column (Form::by_channel).
class Views {
 public:
  explicit Views(const Given& given);  // which has to outlive it
  const Given& of(const Form& form) const;

 private:
  const Given& own_;
  std::optional<Given> pixels_, columns_;
};

// All forms that may have made y of x, the usual ones first. AdaNorm's C and k are not among their
// options: they follow from y.
std::vector<Form> forms_for(const Given& given);

}  // namespace keel::identify
