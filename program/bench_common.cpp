#include "program/bench_common.h"

#include "frontend/io/message.h"

namespace keel::cli {

nlohmann::ordered_json time_json(const bench::Timing& t) {
  return {{"median", t.median}, {"p10", t.p10}, {"p90", t.p90}};
}

std::unique_ptr<bench::TorchPeer> start_peer(const PeerArgs& peer, const RunArgs& run,
                                             const Backend& backend,
                                             const std::vector<std::string>& modes) {
  if (peer.name.empty()) return nullptr;
  bench::TorchOptions options{.threads = run.threads, .tf32 = run.tf32};
  if (backend.name() == "cuda") {
    options.device = "cuda";
    options.modes = modes;
  }
  if (!peer.modes.empty()) options.modes = peer.modes;
  std::string missing;
  auto torch = bench::TorchPeer::start(options, missing);
  if (!torch) {
    io::warn(fmt::format("no peer torch: {} (the variable KEEL_PYTHON names the Python to run)",
                         missing));
  }
  return torch;
}

nlohmann::ordered_json torch_json(const bench::TorchTimes& torch,
                                  const std::vector<std::string>& bodies) {
  nlohmann::ordered_json modes;
  for (const bench::TorchMode& mode : torch.modes) {
    nlohmann::ordered_json& json = modes[mode.name];
    if (!mode.refusal.empty()) json["refusal"] = mode.refusal;
    for (std::size_t i = 0; i < mode.bodies.size(); ++i) {
      json[bodies[i]] = time_json(mode.bodies[i]);
    }
  }
  return {{"ratio", torch.ratio()}, {"fastest", torch.fastest().name}, {"modes", modes}};
}

}  // namespace keel::cli
