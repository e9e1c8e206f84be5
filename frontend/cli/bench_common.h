// What the subcommands of `keel bench` share.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/torch_peer.h"
#include "src/runtime/backend.h"

namespace keel::cli {

nlohmann::ordered_json time_json(const bench::Timing& t);

// The peer that was asked for with --peer, for the backend's device and so many threads. Null when
// none was, and, with a warning on stderr, when it is not there.
std::unique_ptr<bench::TorchPeer> start_peer(const std::string& peer, const Backend& backend,
                                             int threads);

}  // namespace keel::cli
