// Shared parts of the subcommands of `keel bench`.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/library_peer.h"
#include "program/commands.h"
#include "src/runtime/backend.h"

namespace keel::cli {

nlohmann::ordered_json time_json(const bench::Timing& t);

// The peer that --peer names, on the backend's device and with as many threads, in the chosen
// modes, or on cuda in all of `modes`. Null if none was named, and, with a warning on stderr, if it
// is missing. Throws Error{kUsage} for what JAX does not have.
std::unique_ptr<bench::LibraryPeer> start_peer(const PeerArgs& peer, const RunArgs& run,
                                               const Backend& backend,
                                               const std::vector<std::string>& modes);

// "fastest" names one of "modes"; each has the times of its bodies by name, or a refusal. `ours` is
// the name of keel's times.
nlohmann::ordered_json peer_json(const bench::PeerTimes& peer,
                                 const std::vector<std::string>& bodies, const char* ours);

}  // namespace keel::cli
