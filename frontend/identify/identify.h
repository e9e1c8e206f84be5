// Names the norm that a program computes, from its numbers.
#pragma once

#include "frontend/identify/form.h"
#include "src/runtime/backend.h"

namespace keel::identify {

// A distance from a result, in bounds of rounding; at most 1: it is that result.
using Distances = std::vector<std::pair<std::string, double>>;

struct Candidate {
  Form form;
  double y = 0;
  bool has_general_bounds = true;  // else the bounds are those that keel promises for itself
  Distances dx;                    // from each way in which programs form it, the right one first
  std::optional<double> dgain;

  // How dx is formed: "exact", another way, or "" where none fits or none was given.
  std::string gradient() const;
  // The norm's name; dx decides between norms with the same y.
  std::string norm() const;
  // The options that were chosen for it, and "offset=1" and "evaluation=true"; eps is always there
  // where the norm has one, and all others have their defaults.
  std::vector<Option> options() const;
  std::string text() const;  // "layernorm{eps=1e-05,offset=1}"
};

struct Answer {
  std::vector<Candidate>
      matches;  // those that rounding cannot tell from the data, usual ones first
  std::vector<Candidate> nearest;  // the nearest of all, if there are no matches; none where no
                                   // norm takes the arrays
  std::vector<std::string> notes;  // what cannot be told and what would tell it, running statistics

  // Expects that a norm takes the arrays.
  const Candidate& best() const { return matches.empty() ? nearest[0] : matches[0]; }
  // There is a match, and the gradients that were given are its own.
  bool fits() const;
};

// Tries every form that takes x in the reference, a backend of float64.
Answer identify(Backend& reference, const Given& given);

// Sentences on options that the data do not tell.
std::vector<std::string> undecided(const std::vector<Candidate>& matches);
// A sentence on where y was rounded to bfloat16, or "" where it was not.
std::string place_of_rounding(Backend& reference, const Given& given, const Form& form);
// Sentences on running statistics: which share of the batch they took, or why that is not told.
std::vector<std::string> running(Backend& reference, const Given& given, const Form& form);

}  // namespace keel::identify
