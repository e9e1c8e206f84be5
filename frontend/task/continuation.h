// A text that a language model is asked to continue.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace keel::task {

// How tokens are drawn from the distribution p of a network.
struct SampleOptions {
  double temperature = 1;  // p^(1 / temperature), normalized; 0: always the likeliest token
  std::int64_t top_k = 0;  // only the k likeliest tokens; 0: all
  double top_p = 1;        // only the likeliest tokens that together have this probability
  std::uint64_t seed = 1;

  // Throws Error{kUsage} naming the option, what was expected and what was given.
  void validate() const;
};

struct Continuation {
  std::string prompt;
  std::int64_t tokens = 100;  // that are added
  SampleOptions sample = {};
  // Takes the text of each token as soon as it is drawn, if there is one who wants it.
  std::function<void(std::string_view)> give = {};
};

}  // namespace keel::task
