#include "program/bench_common.h"

#include <algorithm>

#include "frontend/io/message.h"

namespace keel::cli {

nlohmann::ordered_json time_json(const bench::Timing& t) {
  return {{"median", t.median}, {"p10", t.p10}, {"p90", t.p90}};
}

namespace {

// What JAX does not have, of what is asked for.
void check_jax(const PeerArgs& peer, const Backend& backend) {
  check(backend.name() != "cuda", ErrorKind::kUsage,
        "--peer jax: expected a backend on the CPU, got cuda");
  for (const std::string& mode : peer.modes) {
    check(std::ranges::find(kJaxPeerModes, mode) != kJaxPeerModes.end(), ErrorKind::kUsage,
          "--peer-modes: expected {} of JAX, got '{}'", fmt::join(kJaxPeerModes, ", "), mode);
  }
}

}  // namespace

std::unique_ptr<bench::LibraryPeer> start_peer(const PeerArgs& peer, const RunArgs& run,
                                               const Backend& backend,
                                               const std::vector<std::string>& modes) {
  if (peer.name.empty()) return nullptr;
  if (peer.name == "jax") check_jax(peer, backend);
  bench::PeerOptions options{.library = peer.name,
                             .threads = run.threads,
                             .tf32 = run.tf32,
                             .under_load = peer.under_load};
  if (backend.name() == "cuda") {
    options.device = "cuda";
    options.modes = modes;
  }
  if (!peer.modes.empty()) options.modes = peer.modes;
  std::string missing;
  auto library = bench::LibraryPeer::start(options, missing);
  if (!library) {
    io::warn(fmt::format("no peer {}: {} (the variable KEEL_PYTHON names the Python to run)",
                         peer.name, missing));
  }
  return library;
}

nlohmann::ordered_json peer_json(const bench::PeerTimes& peer,
                                 const std::vector<std::string>& bodies, const char* ours) {
  nlohmann::ordered_json modes;
  for (const bench::PeerMode& mode : peer.modes) {
    nlohmann::ordered_json& json = modes[mode.name];
    if (!mode.refusal.empty()) json["refusal"] = mode.refusal;
    for (std::size_t i = 0; i < mode.bodies.size(); ++i) {
      json[bodies[i]] = time_json(mode.bodies[i]);
    }
  }
  return {{"ratio", peer.ratio()},
          {"fastest", peer.fastest().name},
          {"modes", modes},
          {ours, time_json(peer.ours)}};
}

}  // namespace keel::cli
