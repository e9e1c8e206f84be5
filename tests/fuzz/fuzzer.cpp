// libFuzzer's way into the readers: keel_fuzz --target=NAME, then libFuzzer's own arguments, which
// passes over what begins with two dashes. --list prints the names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "tests/fuzz/target.h"

namespace {

std::optional<keel::fuzz::Target> chosen;

void list_and_exit() {
  for (const auto& target : keel::fuzz::all_targets()) {
    std::printf("%.*s\n", int(target.name.size()), target.name.data());
  }
  std::exit(0);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument == "--list") list_and_exit();
    for (const auto& target : keel::fuzz::all_targets()) {
      if (argument == "--target=" + std::string(target.name)) chosen = target;
    }
  }
  if (chosen) return 0;
  std::fprintf(stderr, "keel_fuzz: expected --target=NAME, one of --list\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  keel::fuzz::run_target(*chosen, {reinterpret_cast<const char*>(data), size});
  return 0;
}
