// The choice that train.compute = auto makes, by measuring the products of a training step.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "frontend/train/job.h"
#include "src/runtime/backend.h"

namespace keel::train {

// Seconds of all products of a step, the casts of their factors included where these are bf16.
struct ProductTimes {
  double f32 = 0, bf16 = 0;

  // bf16 has to win clearly: what is not measured, such as its rounding, speaks for f32.
  Compute faster() const { return bf16 < 0.9 * f32 ? Compute::kBf16 : Compute::kF32; }
};

// Times of single products that were measured before, in a file of lines "what\tf32\tbf16". Lines
// of any other form, and a file that cannot be read or written, are as good as none.
class KeptTimes {
 public:
  // `machine`: what the times depend on beside the product, such as processor and threads.
  KeptTimes(std::filesystem::path file, std::string machine);

  // The times of that product, which `measure` gives if they are not known.
  ProductTimes of(const std::string& product, const std::function<ProductTimes()>& measure);

 private:
  std::filesystem::path file_;
  std::string machine_;
  std::map<std::string, ProductTimes> times_;
};

// compute.txt in KEEL_CACHE, or in the folder keel of XDG_CACHE_HOME or ~/.cache; empty without.
std::filesystem::path kept_times_file();

// Measures each product of a step of the job, forward and backward, at the sizes of a batch, once
// for each kind. bf16 counts as infinitely slow on a backend that refuses it.
ProductTimes measure_products(Backend& backend, const Job& job, KeptTimes& kept);

}  // namespace keel::train
