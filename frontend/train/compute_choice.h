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

  // bf16 has to win clearly: its rounding, which no time shows, has to be worth it.
  Compute faster() const { return bf16 < 0.9 * f32 ? Compute::kBf16 : Compute::kF32; }
};

// Seconds of single products and casts that were measured before, in a file of lines
// "what\tseconds". Lines of any other form, and a file that cannot be read or written, are as good
// as none.
class KeptTimes {
 public:
  // `machine`: what the times depend on beside the product, such as processor and threads.
  // Throws Error{kIo} for a file that is there and is no regular one, such as a pipe.
  KeptTimes(std::filesystem::path file, std::string machine);

  // The time of that kind of product, which `measure` gives if it is not known. The file keeps only
  // finite times.
  double of(const std::string& kind, const std::function<double()>& measure);

 private:
  std::filesystem::path file_;
  std::string machine_;
  std::map<std::string, double> times_;
};

// compute.txt in KEEL_CACHE, or in the folder keel of XDG_CACHE_HOME or ~/.cache; empty without.
std::filesystem::path kept_times_file();

// Whether the backend runs products of bf16 factors here.
bool takes_bf16(Backend& backend);

// Measures each product of a step of the job, forward and backward, at the sizes of a batch, once
// for each kind: in both types as the backend's passes leave it. bf16 counts as infinitely slow on
// a backend that refuses it, and nothing is measured then. Leaves the job with
// train.compute = f32.
ProductTimes measure_products(Backend& backend, Job& job, KeptTimes& kept);

}  // namespace keel::train
