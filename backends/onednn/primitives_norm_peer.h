// oneDNN's own layer and batch normalization. The backend's kernels do not use them:
// `keel bench norms` compares ours with them.
#pragma once

#include "backends/onednn/primitives.h"

namespace keel::onednn {

// Normalization with gain and bias, in training. x is (rows, width) or an image (n, c, h, w):
//   layer: over all axes but the first;  gain, bias (width or c h w);  mean, variance (rows or n)
//   batch: over all axes but the second; gain, bias, mean, variance (width or c)
struct NormPeerSpec {
  enum Kind { kLayer, kBatch } kind = kLayer;
  Shape x;
  double eps = 1e-5;

  std::int64_t parameters() const;  // elements of gain and of bias
  std::int64_t statistics() const;  // of mean and of variance
};

// Inputs and outputs have these places.
struct NormPeerInput {
  enum Place : int { kX, kGain, kBias };
};
struct NormPeerOutput {
  enum Place : int { kY, kMean, kVariance };
};
struct NormPeerBackwardInput {
  enum Place : int { kX, kDy, kMean, kVariance, kGain, kBias };
};
struct NormPeerGradient {
  enum Place : int { kDx, kDgain, kDbias };
};

// Unlike other primitives, these are created for the number of threads entered, as oneDNN is
// normally used; sums may depend on that number. Refused where oneDNN has no implementation.
Prepared make_norm_peer(const NormPeerSpec& spec);
Prepared make_norm_peer_backward(const NormPeerSpec& spec);

}  // namespace keel::onednn
