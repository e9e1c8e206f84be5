// The element type of the factors of a training step's products.
#pragma once

#include <array>
#include <string_view>

namespace keel::train {

// f32: products, convolutions and attention take float32.
// bf16: they take factors rounded to bf16, and add up in float32. Parameters, the optimizer,
//   statistics, losses, checkpoints and evaluations stay float32.
// auto: a measurement on this machine chooses one of the two for the model
//   (frontend/train/compute_choice.h), and the run's config.toml names the choice.
enum class Compute { kF32, kBf16, kAuto };
constexpr auto choice_words(Compute) {
  return std::to_array<std::string_view>({"f32", "bf16", "auto"});
}

}  // namespace keel::train
