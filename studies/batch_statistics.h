// Facts about a norm over the batch in one step: the distance of its statistics from the running
// ones, and the parts of its gradient that pass through them (Shen et al. 2020, section 4). With d
// features, mu and v of the batch (v = sigma^2, or psi^2 of PN-V), s = sqrt(v + eps), the running
// ones as they were before the update, and means over the rows that are not padding:
//     distance_mean     |mu - running|_2 / d
//     distance_square   |v - running|_2 / d
//     gradient_mean     |(gain / s) mean(dy)|_2 / d
//     gradient_square   the mean over rows of |(gain / s) mean(dy xhat) xhat|_2 / d
//     tid_mean          |mu - running|_2 / |sqrt(running v)|_2
//     tid_deviation     |sqrt(v) - sqrt(running v)|_2 / |sqrt(running v)|_2
// The last two are the distance of training from inference of Wang et al. 2022 (arXiv 2210.05153),
// with the running statistics for those of the population.
// Only batch norm has a mean. The gradients of PowerNorm and of Unified Norm do not pass through
// the statistics of the batch: these two have distances only. Unified Norm averages its statistics
// over several batches; the distances are those of the current batch.
#pragma once

#include "studies/observed_norms.h"

namespace keel::study {

struct WatchedNorm {
  const char* name = "";
  const OpInfo* op = nullptr;
  const char* square = "";   // the state that follows the batch's variances or mean squares
  bool is_centred = false;   // it subtracts a mean
  bool has_gradient = true;  // that passes through the statistics of the batch
  int mask = 0, dy = 0;      // places among the inputs of the norm and of its backward
  double eps = 0;
};
// Throws Error{kUsage}, which names where the norm was given, for any norm but batchnorm, pn_v,
// powernorm and unifiednorm.
WatchedNorm watched_norm(const std::string& norm, const std::string& where = "[statistics] --norm");

// A copy of tokens (rows, d) as they are, of images (n, d, h, w) as (n h w, d).
Value rows_of_features(Graph& graph, Value x);

// Marks what values_at() reads: x, dy and the mask. Of a PowerNorm that scales its rows in groups
// x is the scaled rows, whose mean square its running statistic follows.
void mark_values(Graph& graph, const ObservedNorm& site, const WatchedNorm& norm);

// Rows are tokens or the pixels of images, without padding; float64.
struct NormValues {
  Tensor x, dy;  // (rows, d)
};
NormValues values_at(const Program& program, const ObservedNorm& site);

// (d) each, before the update; only a batch norm has a mean.
struct NormBefore {
  Tensor mean, square, gain;
};

struct BatchStatistics {
  double distance_mean = 0, distance_square = 0, gradient_mean = 0, gradient_square = 0;
  double tid_mean = 0, tid_deviation = 0;
};
BatchStatistics batch_statistics(const NormValues& values, const NormBefore& before,
                                 const WatchedNorm& norm);

}  // namespace keel::study
