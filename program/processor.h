// The processor that keel runs on, as results have to name it.
#pragma once

#include <string>

namespace keel::cli {

// "AMD EPYC, family 25, model 17: 32K L1d, 1024K L2, 32768K L3": its name, what tells it from
// others of that name, and the caches that the first core uses, as Linux writes their sizes. What
// the system does not say is left out; "unknown processor" if it says nothing.
std::string processor_text();

}  // namespace keel::cli
