// What the subcommands of `keel bench` share.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/torch_peer.h"
#include "program/commands.h"
#include "src/runtime/backend.h"

namespace keel::cli {

nlohmann::ordered_json time_json(const bench::Timing& t);

// The peer that was asked for with --peer, on the backend's device and as many threads, in the
// modes asked for, or on cuda in all of `modes`. Null when none was, and, with a warning on stderr,
// when it is not there.
std::unique_ptr<bench::TorchPeer> start_peer(const PeerArgs& peer, const RunArgs& run,
                                             const Backend& backend,
                                             const std::vector<std::string>& modes);

// "fastest" names one of "modes", each with the times of its bodies, called so, or a refusal.
nlohmann::ordered_json torch_json(const bench::TorchTimes& torch,
                                  const std::vector<std::string>& bodies);

}  // namespace keel::cli
