// The trainings of the miniatures: a residual network on vectors (the small counterpart of Xu et
// al. 2019) and on sentences (of Shen et al. 2020).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "frontend/train/job.h"
#include "studies/mini_data.h"
#include "studies/study.h"

namespace keel::study {

// The task on a recipe (frontend/train/job.h), with this seed for data, weights and batches,
// settings {"model.norm", "layernorm"}, ..., and unless it is 0 this number of steps.
train::Job mini_job(std::unique_ptr<task::Task> task, std::string_view recipe, std::uint64_t seed,
                    const task::OptionValues& settings, int steps = 0);

// 400 steps of Adam at 64 rows, drawn from 4,000 unless another order is given.
struct VectorRun {
  std::string norm;
  bool post = false;  // the norm after each sum
  int steps = 0;      // unless it is 0
  RowOrder order = RowOrder::kDrawn;
  int blocks = 12, width = 64;
};
// The i-th seed, counted from the first; options.steps, if given, replaces the number of steps.
train::Job vector_job(const Options& options, int i, const VectorRun& run);

// 4 blocks, 800 steps of Adam at 8 sentences of 16 tokens, a stream.
struct SentenceRun {
  std::string norm;
  bool layer_scale = false;  // before every norm
  double spread = 1;         // of the sentences' scales
};
train::Job sentence_job(const Options& options, int i, const SentenceRun& run);

}  // namespace keel::study
