// The trainings of the miniatures: a residual network on vectors (the small counterpart of Xu et
// al. 2019) and on sentences (of Shen et al. 2020).
#pragma once

#include "studies/mini_training.h"
#include "studies/study.h"

namespace keel::study {

// 12 blocks, 400 steps of Adam at 64 rows, drawn (RowOrder::kDrawn) from 4,000.
struct VectorRun {
  std::string norm;
  bool post = false;  // the norm after each sum
  int steps = 0;      // unless it is 0
};
// The i-th seed from the first on; options.steps, where given, overrides the number of steps.
train::Config vector_config(const Options& options, int i, const VectorRun& run);

// 4 blocks, 800 steps of Adam at 8 sentences of 16 tokens, a stream (RowOrder::kStream).
struct SentenceRun {
  std::string norm;
  bool layer_scale = false;  // in front of every norm
  double spread = 1;         // of the sentences' scales
};
train::Config sentence_config(const Options& options, int i, const SentenceRun& run);

}  // namespace keel::study
