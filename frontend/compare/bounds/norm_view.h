// A norm's node as a view of x: which elements share statistics or a gain, and where the norm's
// terms are among inputs and outputs.
#pragma once

#include <optional>

#include "frontend/compare/bounds/node_bounds.h"

namespace keel::compare {

// Places of a norm's inputs and outputs, by their names; the second half are those of its backward,
// if that is the op. A place below 0 says that there is no such term.
struct NormPlaces {
  // `op` is a norm of x or its backward. Throws Error{kInternal} for any other.
  explicit NormPlaces(const OpInfo& op);

  NormGroups groups = NormGroups::kRows;
  int gain = -1, bias = -1, mean = -1, rstd = -1;  // the forward's two inputs, two outputs
  int mask = -1;                                   // of the forward
  int dy = -1;
  int d_gain = -1, d_mean = -1, d_rstd = -1, d_mask = -1;
  int factor = -1;     // the factor of dx, where that is not rstd
  int r = -1, d = -1;  // y = r xhat + d: outputs of the forward, inputs of the backward, of which r
                       // may be a factor of dy alone
  int row_rstd = -1;   // of a scaling of rows in front: likewise
  int slope = -1;      // a state that multiplies xhat
  int rows = -1;       // of former steps: a state whose mean multiplies xhat, or moves `slope`
};

// A node of a norm, forward or backward.
class NormView {
 public:
  NormView(const ComparedNode& node, bool is_backward);

  const NormPlaces& places() const { return places_; }
  std::size_t size() const {
    return x_shape_.elements() > 0 ? std::size_t(x_shape_.elements()) : 0;
  }
  std::size_t groups() const { return group_count_; }
  std::size_t group(std::size_t e) const;
  std::size_t feature(std::size_t e) const;
  // xhat = (x - mean) rstd, where x has passed the scaling in front, if there is one; 0 where a
  // backward has no x.
  double xhat(std::size_t e) const;
  double deviation(std::size_t group) const { return 1 / rstd_[group]; }
  bool is_centred() const { return !mean_.empty(); }
  double mean(std::size_t group) const { return mean_.empty() ? 0 : mean_[group]; }
  double rstd(std::size_t group) const { return rstd_[group]; }
  double gain(std::size_t e) const {
    return gain_.empty() ? 1 : offset_ + gain_[gain_.size() == 1 ? 0 : feature(e)];
  }
  bool is_kept(std::size_t e) const;
  // The factor of element e in a scaling of rows in front, and the number of its group.
  bool is_scaled() const { return !scaling_.empty(); }
  double scaling(std::size_t e) const { return scaling_[scaling_group(e)]; }
  std::size_t scaling_group(std::size_t e) const { return e / scaling_width(); }
  std::size_t scaling_width() const { return size() / scaling_.size(); }
  // The largest factor of xhat, where it depends on xhat (NormTraits::largest_factor); else 1.
  double phi(std::size_t e) const;

 private:
  void set_sizes();

  const ComparedNode& node_;
  const NormPlaces places_;
  Shape x_shape_;
  std::span<const double> x_, mean_, rstd_, gain_, scaling_;
  std::size_t features_ = 1, inner_ = 1, parts_ = 1, block_ = 1, group_count_ = 0;
  int mask_ = -1;
  double offset_ = 0;  // of the gain
};

}  // namespace keel::compare
