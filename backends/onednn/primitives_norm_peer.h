// oneDNN's own layer and batch normalization. No kernel of the backend is made of them: they are
// what `keel bench norms` sets beside ours.
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

// Unlike other primitives these are created for the threads entered, whatever their number, which
// is how oneDNN serves others; sums may depend on it. Refused where oneDNN has no implementation.
Prepared make_norm_peer(const NormPeerSpec& spec);  // (x, gain, bias) -> y, mean, variance
// (x, dy, mean, variance, gain, bias) -> dx, dgain, dbias
Prepared make_norm_peer_backward(const NormPeerSpec& spec);

}  // namespace keel::onednn
