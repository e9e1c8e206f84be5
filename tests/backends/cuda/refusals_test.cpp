// What is said where a GPU, its driver or its memory does not do.
#include "backends/cuda/refusals.h"

#include <doctest/doctest.h>

namespace keel::cuda {
namespace {

TEST_CASE("cuda refusals: a driver that is not there, or too old, with both versions") {
  CHECK(driver_refusal(0, 13010) == "there is no NVIDIA driver");
  CHECK(driver_refusal(12080, 13010) ==
        "the NVIDIA driver is for CUDA 12.8, expected one for CUDA 13.0 or newer");
}

TEST_CASE("cuda refusals: a driver without a device tells what hides one") {
  CHECK(none_counted(13000).starts_with("the driver, for CUDA 13.0, shows none: CUDA_VISIBLE"));
  CHECK(none_counted(13000).find("MIG mode has none before an instance is made") !=
        std::string::npos);
}

TEST_CASE("cuda refusals: a GPU that is too old, or newer than the driver can compile for") {
  CHECK(capability_refusal({7, 5}, 13000, 13000) ==
        "expected compute capability 8.0 or newer, got 7.5");
  for (const Capability known : {Capability{8, 0}, {8, 6}, {8, 9}, {9, 0}}) {
    CHECK(capability_refusal(known, 12020, 12080).empty());  // the build has code for it
  }
  for (const Capability next : {Capability{10, 0}, {12, 1}}) {
    CHECK(capability_refusal(next, 13010, 13010).empty());
    CHECK(capability_refusal(next, 13000, 13010) ==
          fmt::format("compute capability {} is newer than the code of this build (8.0 and 9.0), "
                      "and its PTX takes a driver for CUDA 13.1 or newer, got one for CUDA 13.0",
                      next.text()));
  }
}

TEST_CASE("cuda refusals: memory that is not there, with what is") {
  CHECK(memory_refusal(70, 50, 100) ==
        "out of device memory: 70 bytes were asked for, 50 of 100 are free");
  CHECK(memory_refusal(70, 0, 0) == "out of device memory: 70 bytes were asked for");
}

}  // namespace
}  // namespace keel::cuda
