#include "frontend/compare/walk/trace.h"

#include "src/graph/print.h"

namespace keel::compare {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPieceBytes = 64 << 20;
constexpr io::SafetensorsOptions kChecked{.require_checksums = true};

fs::path head_path(const fs::path& folder) { return folder / "trace.safetensors"; }
fs::path piece_path(const fs::path& folder, std::int64_t step, std::int64_t piece) {
  return folder / fmt::format("step{:05}-{:04}.safetensors", step, piece);
}
fs::path end_path(const fs::path& folder, std::int64_t step) {
  return folder / fmt::format("step{:05}-end.safetensors", step);
}

std::int64_t whole_steps(const fs::path& folder) {
  std::int64_t steps = 0;
  while (fs::exists(end_path(folder, steps))) ++steps;
  return steps;
}

io::TensorFile read(const fs::path& path) { return io::read_safetensors(path, kChecked); }

Feeds leaves_before(const fs::path& folder, std::int64_t step) {
  return read(step == 0 ? head_path(folder) : end_path(folder, step - 1)).tensors;
}

std::string trace_name(std::string_view whose, const Node& node, std::size_t port) {
  return fmt::format("{}/{}:{}", whose, node.name, port);
}

Feeds copies(const Feeds& values) {
  Feeds result;
  for (const auto& [name, value] : values) result[name] = value.clone();
  return result;
}

}  // namespace

std::string graph_mark(const Graph& graph) {
  return fmt::format("{:08x} of {} nodes", stream_of(print(graph)), graph.size());
}

TraceWriter::TraceWriter(fs::path folder, TraceFacts facts)
    : folder_(std::move(folder)), facts_(std::move(facts)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  check(!error, ErrorKind::kIo, "{}: {}", folder_.string(), error.message());
  if (!fs::exists(head_path(folder_))) return;
  const TraceReader former(folder_);
  check(former.facts() == facts_, ErrorKind::kUsage,
        "{}: this folder holds another trace already; give another --record", folder_.string());
  steps_ = former.steps();
}

Feeds TraceWriter::leaves() const { return leaves_before(folder_, steps_); }

void TraceWriter::set_first(const Feeds& leaves) {
  if (!fs::exists(head_path(folder_))) {
    io::write_safetensors(head_path(folder_), {copies(leaves), facts_});
  }
}

void TraceWriter::begin(std::int64_t step) {
  step_ = step;
  piece_ = 0;
}

void TraceWriter::add(const std::string& name, const Tensor& value) {
  if (value.elements() == 0) return;
  bytes_ += value.bytes();
  pending_.tensors[name] = value.clone();
  if (bytes_ >= kPieceBytes) flush();
}

void TraceWriter::flush() {
  io::write_safetensors(piece_path(folder_, step_, piece_++), pending_);
  pending_ = {};
  bytes_ = 0;
}

void TraceWriter::end(const Feeds& leaves) {
  flush();
  io::write_safetensors(end_path(folder_, step_), {copies(leaves), {}});
  steps_ = step_ + 1;
}

TraceReader::TraceReader(fs::path folder) : folder_(std::move(folder)) {
  check(fs::exists(head_path(folder_)), ErrorKind::kBadInput,
        "{}: expected a trace, that is a folder that keel compare --record has written",
        folder_.string());
  facts_ = read(head_path(folder_)).metadata;
  const std::string& names = facts_["backends"];
  for (std::size_t first = 0; first < names.size();) {
    const std::size_t end = std::min(names.find(',', first), names.size());
    backends_.push_back(names.substr(first, end - first));
    first = end + 1;
  }
  steps_ = whole_steps(folder_);
}

Feeds TraceReader::leaves(std::int64_t step) const { return leaves_before(folder_, step); }

void TraceReader::begin(std::int64_t step) {
  check(step < steps_, ErrorKind::kBadInput, "{}: expected {} whole steps, got {}",
        folder_.string(), step + 1, steps_);
  io::verify_safetensors(end_path(folder_, step), kChecked);
  step_ = step;
  piece_ = 0;
  current_ = {};
}

bool TraceReader::open_next() {
  const fs::path path = piece_path(folder_, step_, piece_);
  if (!fs::exists(path)) return false;
  current_ = read(path);
  ++piece_;
  return true;
}

const Tensor& TraceReader::at(const std::string& name) {
  while (!current_.tensors.contains(name)) {
    check(open_next(), ErrorKind::kBadInput, "{}: step {} has no {} where it should be",
          folder_.string(), step_, name);
  }
  return current_.tensors.at(name);
}

void record_inputs(TraceWriter& trace, std::int64_t number, const SubjectStep& step,
                   const BackendTrace& truth) {
  if (number == 0) trace.set_first(truth.leaves());
  trace.begin(number);
  for (const auto& [name, value] : step.feeds) trace.add("feed/" + name, value);
}

void replay_inputs(TraceReader& trace, std::int64_t number, SubjectStep& step,
                   BackendTrace& truth) {
  trace.begin(number);
  truth.set_leaves(trace.leaves(number));
  for (auto& [name, value] : step.feeds) value = trace.at("feed/" + name).clone();
}

void record_outputs(TraceWriter& trace, std::string_view whose, const Node& node,
                    std::span<const Tensor> outputs) {
  for (std::size_t port = 0; port < outputs.size(); ++port) {
    trace.add(trace_name(whose, node, port), outputs[port]);
  }
}

std::vector<Tensor> replay_outputs(TraceReader& trace, std::string_view whose, const Node& node) {
  std::vector<Tensor> outputs;
  for (std::size_t port = 0; port < node.outputs.size(); ++port) {
    const TensorType& type = node.outputs[port];
    if (type.shape.elements() == 0) {
      outputs.emplace_back(type);
      continue;
    }
    const Tensor& value = trace.at(trace_name(whose, node, port));
    check(value.type() == type, ErrorKind::kBadInput, "trace: {}: expected {}, got {}", node.name,
          type.text(), value.type().text());
    outputs.push_back(value.clone());
  }
  return outputs;
}

}  // namespace keel::compare
