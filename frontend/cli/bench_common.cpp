#include "frontend/cli/bench_common.h"

#include <cstdio>

namespace keel::cli {

nlohmann::ordered_json time_json(const bench::Timing& t) {
  return {{"median", t.median}, {"p10", t.p10}, {"p90", t.p90}};
}

std::unique_ptr<bench::TorchPeer> start_peer(const std::string& peer, const Backend& backend,
                                             int threads) {
  if (peer.empty()) return nullptr;
  std::string missing;
  auto torch = bench::TorchPeer::start(backend.name() == "cuda" ? "cuda" : "cpu", threads, missing);
  if (!torch) {
    fmt::print(stderr,
               "warning: no peer torch: {} (the variable KEEL_PYTHON names the Python to run)\n",
               missing);
  }
  return torch;
}

}  // namespace keel::cli
