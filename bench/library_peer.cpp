#include "bench/library_peer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "bench/load.h"

namespace keel::bench {
namespace {

using nlohmann::json;

#include "peer_scripts.inc"

std::string python_program() {
  const char* named = std::getenv("KEEL_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

// Throws Error{kBadInput} for what is not as the script writes it.
template <class T>
T part(const json& answer, const std::string& name) {
  try {
    return answer.at(name).get<T>();
  } catch (const json::exception&) {
    fail(ErrorKind::kBadInput, "peer: expected an answer with '{}', got {}", name,
         answer.dump().substr(0, 200));
  }
}

using Values = std::map<std::string, std::vector<double>>;

// The first difference from the expected values, or "".
std::string difference(const PeerCase::Expected& expected, const Values& values, double tolerance) {
  const auto found = values.find(expected.name);
  if (found == values.end() || found->second.size() != expected.elements.size()) {
    return fmt::format("computes something else: {} is not of the same size", expected.name);
  }
  double largest = 0;
  for (const double v : expected.elements) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < expected.elements.size(); ++i) {
    const double want = expected.elements[i], got = found->second[i];
    if (!(std::abs(got - want) <= tolerance * largest)) {
      return fmt::format("computes something else: {}: expected {}, got {}", expected.name, want,
                         got);
    }
  }
  return "";
}

// Another function differs by more, another rounding by less: losses and norms of gradients are
// sums of many numbers, whose factors may be off by 2^-8 each where one side rounds them to bf16.
double tolerance_of(const PeerCase& task, const std::string& mode) {
  return task.is_narrow || mode.starts_with("autocast") ? 3e-2 : 1e-3;
}

// Why a mode has no times, or "".
std::string refusal(const json& reply, const std::string& mode, const PeerCase& task) {
  if (reply.contains("error")) return part<std::string>(reply, "error");
  const json made = part<json>(part<json>(reply, "modes"), mode);
  if (made.contains("reason")) return part<std::string>(made, "reason");
  const auto values = part<Values>(made, "values");
  const double tolerance = tolerance_of(task, mode);
  for (const PeerCase::Expected& e : task.expected) {
    const std::string what = difference(e, values, tolerance);
    if (!what.empty()) return what;
  }
  return "";
}

}  // namespace

std::vector<double> probe(const Tensor& value) {
  const std::int64_t n = value.elements(), count = std::min<std::int64_t>(n, 16);
  std::vector<double> elements;
  for (std::int64_t i = 0; i < count; ++i) elements.push_back(value.at(i * n / count));
  return elements;
}

json norm_facts(const nn::Norm& norm) {
  return {
      {"name", norm.name()}, {"options", norm.options()}, {"is_batch_type", norm.is_batch_type()}};
}

std::string_view title_of(std::string_view library) { return library == "jax" ? "JAX" : "PyTorch"; }

const PeerMode& PeerTimes::fastest() const {
  const PeerMode* best = nullptr;
  for (const PeerMode& mode : modes) {
    if (!mode.refusal.empty()) continue;
    if (!best || mode.bodies.back().median < best->bodies.back().median) best = &mode;
  }
  return *best;
}

std::string PeerTimes::text(std::string_view title) const {
  return fmt::format("{}'s {} / ours = {:.3f} ms / {:.3f} ms = {:.2f}", title, fastest().name,
                     fastest().bodies.back().median * 1e3, ours.median * 1e3, ratio());
}

std::string refusals_of(const std::vector<PeerMode>& modes) {
  if (modes.size() == 1) return modes[0].refusal;
  std::vector<std::string> refusals;
  for (const PeerMode& mode : modes) {
    if (!mode.refusal.empty()) refusals.push_back(mode.name + ": " + mode.refusal);
  }
  return fmt::format("{}", fmt::join(refusals, "; "));
}

PeerTimes peer_times(std::vector<PeerMode> modes, const Timing& ours,
                     std::span<const Timing> theirs) {
  const auto is_usable = [](const PeerMode& mode) { return mode.refusal.empty(); };
  const auto usable = std::ranges::count_if(modes, is_usable);
  const std::size_t bodies = theirs.size() / std::size_t(std::max<std::ptrdiff_t>(usable, 1));
  for (PeerMode& mode : modes) {
    if (!is_usable(mode)) continue;
    mode.bodies.assign(theirs.begin(), theirs.begin() + std::ptrdiff_t(bodies));
    theirs = theirs.subspan(bodies);
  }
  return {ours, std::move(modes)};
}

std::optional<PeerTimes> peer_times_under_load(const LibraryPeer& peer,
                                                const std::vector<PeerMode>& modes,
                                                std::span<const Sampler> ours_and_theirs,
                                                int rounds) {
  if (!peer.options().under_load) return std::nullopt;
  const Load load(peer.options().threads);
  const std::vector<Timing> times = time_in_blocks(ours_and_theirs, rounds);
  return peer_times(modes, times[0], std::span(times).subspan(1));
}

std::unique_ptr<LibraryPeer> LibraryPeer::start(const PeerOptions& options, std::string& missing) {
  const std::string python = python_program();
  const char* script = options.library == "jax" ? kJaxScript : kTorchScript;
  std::vector<std::string> command{python, "-c", script, options.device,
                                   std::to_string(options.threads)};
  if (options.tf32) command.push_back("tf32");
  std::unique_ptr<LibraryPeer> peer;
  try {
    peer.reset(new LibraryPeer(command, options));
  } catch (const Error& error) {
    missing = error.what();
    return nullptr;
  }
  const json greeting = peer->answer();
  if (greeting.contains("missing")) {
    missing = fmt::format("{}: {}", python, part<std::string>(greeting, "missing"));
    return nullptr;
  }
  peer->version_ = part<std::string>(greeting, options.library);
  return peer;
}

std::string LibraryPeer::text() const {
  return fmt::format("{} {}", title_of(options_.library), version_);
}

json LibraryPeer::answer() {
  const std::string line = child_.read_line();
  json answer = json::parse(line, nullptr, false);
  check(answer.is_object(), ErrorKind::kBadInput, "peer: expected a JSON object, got '{}'",
        line.substr(0, 200));
  return answer;
}

std::vector<PeerMode> LibraryPeer::set_up(const PeerCase& task) {
  json tensors = json::array();
  for (const PeerCase::Given& given : task.given) {
    tensors.push_back({{"name", given.name},
                       {"dtype", name_of(given.value.dtype())},
                       {"shape", given.value.shape().sizes()},
                       {"is_parameter", given.is_parameter}});
  }
  child_.send(json{{"case", task.what}, {"modes", options_.modes}, {"tensors", tensors}}.dump() +
              "\n");
  for (const PeerCase::Given& given : task.given) {
    child_.send({reinterpret_cast<const char*>(given.value.data()),
                 std::size_t(given.value.type().bytes())});
  }
  const json reply = answer();
  usable_.clear();
  std::vector<PeerMode> modes;
  for (const std::string& name : options_.modes) {
    modes.push_back({name, refusal(reply, name, task)});
    if (modes.back().refusal.empty()) usable_.push_back(name);
  }
  return modes;
}

Samples LibraryPeer::sample(int bodies, int rounds, int repeats) {
  child_.send(json{{"rounds", rounds}, {"repeats", repeats}, {"modes", usable_}}.dump() + "\n");
  const auto samples = part<Samples>(answer(), "seconds");
  check(std::ssize(samples) == bodies * std::ssize(usable_), ErrorKind::kBadInput,
        "peer: expected times of {}, got {}", bodies * std::ssize(usable_), samples.size());
  for (const auto& seconds : samples) {
    check(std::ssize(seconds) == rounds, ErrorKind::kBadInput, "peer: expected {} times, got {}",
          rounds, seconds.size());
  }
  return samples;
}

std::vector<double> LibraryPeer::peak_bytes() {
  child_.send(json{{"peak", true}, {"modes", usable_}}.dump() + "\n");
  const auto bytes = part<std::vector<double>>(answer(), "bytes");
  check(bytes.size() == usable_.size(), ErrorKind::kBadInput,
        "peer: expected the memory of {}, got {}", usable_.size(), bytes.size());
  return bytes;
}

}  // namespace keel::bench
