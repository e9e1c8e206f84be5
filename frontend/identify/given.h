// The caller's knowledge of a norm: numbers that went in and came out, in float64.
#pragma once

#include <optional>

#include "frontend/io/npz.h"

namespace keel::identify {

// More elements of x than this are refused: every form of every norm is tried.
inline constexpr std::int64_t kMostElements = 4'000'000;

struct Given {
  Tensor x, y;                                  // of one shape
  std::optional<Tensor> gain, bias;             // as the program holds them
  std::optional<Tensor> dy, dx;                 // like x
  std::optional<Tensor> dgain;                  // like gain
  std::map<std::string, Tensor> more;           // further parameters: alpha
  std::map<std::string, Tensor> before, after;  // states around the step, by keel's names

  bool has_parameters() const { return gain || bias; }
  // Whether the gain and the bias, as far as they were given, have so many elements.
  bool has_parameters_of(std::int64_t elements) const {
    return (!gain || gain->elements() == elements) && (!bias || bias->elements() == elements);
  }
};

// From the arrays x, y, gain, bias, dy, dx, dgain, before.STATE and after.STATE of a file, and from
// those of further parameters, such as alpha. Throws Error{kBadInput} naming `path` and the array
// for one that is missing, unknown or of a wrong shape, and for dx or dgain without dy. With dgain
// and no gain, the gain is 1.
Given given_of(io::Arrays arrays, const std::string& path);

}  // namespace keel::identify
