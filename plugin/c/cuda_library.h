// The kernels for GPUs: libkeel_norm_cuda.so, a library of its own. libkeel_norm.so loads it when a
// plan on a GPU is asked for, so a program without GPUs needs nothing of CUDA. Both are of one
// build and exchange objects.
#pragma once

#include "plugin/c/plan.h"

namespace keel::plugin {

// A plan on a GPU, from the library that KEEL_NORM_CUDA_LIBRARY names, else from
// libkeel_norm_cuda.so beside this one. Throws Error{kBackendMissing} if it cannot be loaded and
// for the ops of sums.h, and what keel_norm_cuda_prepare throws.
std::unique_ptr<Plan> plan_on_cuda(const Request& request);

}  // namespace keel::plugin

// The contents of libkeel_norm_cuda.so: the version and interface that it was built with, and its
// plans. The caller owns the plan. Throws as plan_on_host() does, and Error{kBackendMissing} where
// the device is not there.
extern "C" {
KEEL_API const char* keel_norm_cuda_version();
KEEL_API keel::plugin::Plan* keel_norm_cuda_prepare(const keel::plugin::Request& request);
}
