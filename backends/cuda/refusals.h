// Messages that say in numbers why a GPU or its driver cannot be used, or its memory is too small.
// Versions are as CUDA counts: 13010 is 13.1.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace keel::cuda {

inline std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// `driver`: the newest CUDA that the driver knows, 0 without a driver. `built`: the CUDA of this
// build, whose runtime works with every driver for the same major version.
inline std::string driver_refusal(int driver, int built) {
  if (driver == 0) return "there is no NVIDIA driver";
  return fmt::format("the NVIDIA driver is for CUDA {}, expected one for CUDA {} or newer",
                     version_text(driver), version_text(built / 1000 * 1000));
}

inline std::string none_counted(int driver) {
  return fmt::format(
      "the driver, for CUDA {}, shows none: CUDA_VISIBLE_DEVICES may hide them, and a GPU in MIG "
      "mode has none before an instance is made",
      version_text(driver));
}

struct Capability {
  int major = 0, minor = 0;
  std::string text() const { return fmt::format("{}.{}", major, minor); }
};

// The capabilities that this build has code for (meson.build): from 8.0 on below 10.0. For a newer
// GPU the driver compiles the PTX of this build, which only a driver of its age or newer can read.
// Returns "" if a GPU can be used.
inline std::string capability_refusal(Capability gpu, int driver, int built) {
  if (gpu.major < 8) {
    return fmt::format("expected compute capability 8.0 or newer, got {}", gpu.text());
  }
  if (gpu.major < 10 || driver >= built) return "";
  return fmt::format(
      "compute capability {} is newer than the code of this build (8.0 and 9.0), and its PTX takes "
      "a driver for CUDA {} or newer, got one for CUDA {}",
      gpu.text(), version_text(built), version_text(driver));
}

inline std::string memory_refusal(std::int64_t bytes, std::size_t free, std::size_t total) {
  const std::string asked = fmt::format("out of device memory: {} bytes were asked for", bytes);
  return total == 0 ? asked : fmt::format("{}, {} of {} are free", asked, free, total);
}

}  // namespace keel::cuda
