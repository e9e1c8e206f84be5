// Facts that the speed of a backend's products depends on and its description does not name.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/runtime/backend.h"

namespace keel {

// Names and values. onednn: the versions and instruction sets of oneDNN and of the kernels, and
// whether bf16 is native, emulated or refused; cuda: the device, and whether it rounds float32
// factors to tf32; nothing for others. Numbers of threads are none of them.
std::vector<std::pair<std::string, std::string>> product_facts(const Backend& backend);

}  // namespace keel
