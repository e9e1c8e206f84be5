// The name of the processor that keel runs on, for results.
#pragma once

#include <string>

namespace keel::cli {

// "AMD EPYC, family 25, model 17: 32K L1d, 1024K L2, 32768K L3": its name, the facts that tell it
// from others of that name, and the caches of the first core, in Linux's notation. Facts that the
// system does not give are left out; without any it is "unknown processor".
std::string processor_text();

}  // namespace keel::cli
