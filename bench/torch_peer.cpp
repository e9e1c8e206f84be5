#include "bench/torch_peer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

namespace keel::bench {
namespace {

using nlohmann::json;

constexpr const char* kScript =
#include "peer_script.inc"
    ;

std::string python_program() {
  const char* named = std::getenv("KEEL_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

// Throws Error{kBadInput} for what is not as the script writes it.
template <class T>
T part(const json& answer, const char* name) {
  try {
    return answer.at(name).get<T>();
  } catch (const json::exception&) {
    fail(ErrorKind::kBadInput, "peer torch: expected an answer with '{}', got {}", name,
         answer.dump().substr(0, 200));
  }
}

using Values = std::map<std::string, std::vector<double>>;

// The first difference from the expected values, or "".
std::string difference(const TorchCase::Expected& expected, const Values& values,
                       double tolerance) {
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
double tolerance_of(const TorchCase& task, const std::string& mode) {
  return task.is_narrow || mode.starts_with("autocast") ? 3e-2 : 1e-3;
}

// Why a mode has no times, or "".
std::string refusal(const json& reply, const std::string& mode, const TorchCase& task) {
  if (reply.contains("error")) return part<std::string>(reply, "error");
  const json made = part<json>(part<json>(reply, "modes"), mode.c_str());
  if (made.contains("reason")) return part<std::string>(made, "reason");
  const auto values = part<Values>(made, "values");
  const double tolerance = tolerance_of(task, mode);
  for (const TorchCase::Expected& e : task.expected) {
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

const TorchMode& TorchTimes::fastest() const {
  const TorchMode* best = nullptr;
  for (const TorchMode& mode : modes) {
    if (!mode.refusal.empty()) continue;
    if (!best || mode.bodies.back().median < best->bodies.back().median) best = &mode;
  }
  return *best;
}

std::string TorchTimes::text() const {
  return fmt::format("PyTorch's {} / ours = {:.3f} ms / {:.3f} ms = {:.2f}", fastest().name,
                     fastest().bodies.back().median * 1e3, ours.median * 1e3, ratio());
}

std::string refusals_of(const std::vector<TorchMode>& modes) {
  if (modes.size() == 1) return modes[0].refusal;
  std::vector<std::string> refusals;
  for (const TorchMode& mode : modes) {
    if (!mode.refusal.empty()) refusals.push_back(mode.name + ": " + mode.refusal);
  }
  return fmt::format("{}", fmt::join(refusals, "; "));
}

TorchTimes torch_times(std::vector<TorchMode> modes, const Timing& ours,
                       std::span<const Timing> theirs) {
  const auto is_usable = [](const TorchMode& mode) { return mode.refusal.empty(); };
  const auto usable = std::ranges::count_if(modes, is_usable);
  const std::size_t bodies = theirs.size() / std::size_t(std::max<std::ptrdiff_t>(usable, 1));
  for (TorchMode& mode : modes) {
    if (!is_usable(mode)) continue;
    mode.bodies.assign(theirs.begin(), theirs.begin() + std::ptrdiff_t(bodies));
    theirs = theirs.subspan(bodies);
  }
  return {ours, std::move(modes)};
}

std::unique_ptr<TorchPeer> TorchPeer::start(const TorchOptions& options, std::string& missing) {
  const std::string python = python_program();
  std::vector<std::string> command{python, "-c", kScript, options.device,
                                   std::to_string(options.threads)};
  if (options.tf32) command.push_back("tf32");
  std::unique_ptr<TorchPeer> peer;
  try {
    peer.reset(new TorchPeer(command, options.modes));
  } catch (const Error& error) {
    missing = error.what();
    return nullptr;
  }
  const json greeting = peer->answer();
  if (greeting.contains("missing")) {
    missing = fmt::format("{}: {}", python, part<std::string>(greeting, "missing"));
    return nullptr;
  }
  peer->version_ = part<std::string>(greeting, "torch");
  return peer;
}

json TorchPeer::answer() {
  const std::string line = child_.read_line();
  json answer = json::parse(line, nullptr, false);
  check(answer.is_object(), ErrorKind::kBadInput, "peer torch: expected a JSON object, got '{}'",
        line.substr(0, 200));
  return answer;
}

std::vector<TorchMode> TorchPeer::set_up(const TorchCase& task) {
  json tensors = json::array();
  for (const TorchCase::Given& given : task.given) {
    tensors.push_back({{"name", given.name},
                       {"dtype", name_of(given.value.dtype())},
                       {"shape", given.value.shape().sizes()},
                       {"is_parameter", given.is_parameter}});
  }
  child_.send(json{{"case", task.what}, {"modes", modes_}, {"tensors", tensors}}.dump() + "\n");
  for (const TorchCase::Given& given : task.given) {
    child_.send({reinterpret_cast<const char*>(given.value.data()),
                 std::size_t(given.value.type().bytes())});
  }
  const json reply = answer();
  usable_.clear();
  std::vector<TorchMode> modes;
  for (const std::string& name : modes_) {
    modes.push_back({name, refusal(reply, name, task)});
    if (modes.back().refusal.empty()) usable_.push_back(name);
  }
  return modes;
}

Samples TorchPeer::sample(int bodies, int rounds, int repeats) {
  child_.send(json{{"rounds", rounds}, {"repeats", repeats}, {"modes", usable_}}.dump() + "\n");
  const auto samples = part<Samples>(answer(), "seconds");
  check(std::ssize(samples) == bodies * std::ssize(usable_), ErrorKind::kBadInput,
        "peer torch: expected times of {}, got {}", bodies * std::ssize(usable_), samples.size());
  for (const auto& seconds : samples) {
    check(std::ssize(seconds) == rounds, ErrorKind::kBadInput,
          "peer torch: expected {} times, got {}", rounds, seconds.size());
  }
  return samples;
}

std::vector<double> TorchPeer::peak_bytes() {
  child_.send(json{{"peak", true}, {"modes", usable_}}.dump() + "\n");
  const auto bytes = part<std::vector<double>>(answer(), "bytes");
  check(bytes.size() == usable_.size(), ErrorKind::kBadInput,
        "peer torch: expected the memory of {}, got {}", usable_.size(), bytes.size());
  return bytes;
}

}  // namespace keel::bench
