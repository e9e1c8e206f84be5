// Helpers of the tests of recorded steps.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <string>

#include "backends/backends.h"
#include "frontend/data/fixed_batches.h"
#include "frontend/train/feeder.h"
#include "frontend/train/step_graph.h"
#include "tests/support/small_run.h"

namespace keel::cuda {

inline bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), std::size_t(a.bytes())) == 0;
}

// Tensors of the same names, bit by bit.
inline void check_same_bits(const std::map<std::string, Tensor>& got,
                            const std::map<std::string, Tensor>& expected) {
  CHECK(got.size() == expected.size());
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    CHECK(same_bytes(got.at(name), value));
  }
}

// A training step of a small mnist_mlp with its data.
struct Training {
  train::Job job;
  test::Rows rows{job};
  std::unique_ptr<Backend> backend = make_backend("cuda");
  Variables variables{*backend, 1};
  Program step{*backend, variables, train::build_step(job), {.guard = "grad_norm"}};
  data::FixedBatches batches{rows.count(), {.batch = 32, .shuffle = 0}};

  explicit Training(const test::Settings& settings) : job(test::small_job(settings)) {}

  void feed(std::int64_t number) {
    step.feed("lr", Tensor::scalar(1e-2f));
    step.feed("step", Tensor::scalar(std::int32_t(number)));
    rows.feed(step, batches.at(0, number).rows);
  }
  std::map<std::string, Tensor> results() const {
    std::map<std::string, Tensor> all;
    for (const char* name : {"loss", "grad_norm"}) all[name] = step.fetch(name);
    for (const auto& [name, variable] : variables.all()) all[name] = variables.read(name);
    return all;
  }
};

}  // namespace keel::cuda
