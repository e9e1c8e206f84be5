// Traces: the values of a walk in files, to be compared with those of another machine, another
// build or another program.
//
// A trace is a folder. "trace.safetensors" names its subject in its metadata, and holds the values
// of parameters and states before the first step. The pieces "step<N>-<K>.safetensors" hold, by
// name, "feed/<input>" (random keys included), "truth/<node>:<port>", which is the reference's
// output, rounded to float32, and "<backend>/<node>:<port>", which is the backend's.
// "step<N>-end.safetensors" holds the values of leaves after a step, and shows that the step is
// whole. Every file appears whole or not at all, so that an interrupted recording goes on with the
// first step that is not whole.
#pragma once

#include <filesystem>
#include <map>

#include "frontend/compare/walk/backend_trace.h"
#include "frontend/io/safetensors.h"

namespace keel::compare {

using TraceFacts = std::map<std::string, std::string>;

class TraceWriter {
 public:
  // Makes the folder, or continues a trace there that has the same facts. Throws Error{kUsage} when
  // there is another trace in it.
  TraceWriter(std::filesystem::path folder, TraceFacts facts);

  // The number of whole steps, and the values of the leaves after them.
  std::int64_t steps() const { return steps_; }
  Feeds leaves() const;

  // Before the first step only: the values of the leaves at that point.
  void set_first(const Feeds& leaves);
  void begin(std::int64_t step);
  void add(const std::string& name, const Tensor& value);
  void end(const Feeds& leaves);

 private:
  void flush();

  std::filesystem::path folder_;
  TraceFacts facts_;
  std::int64_t steps_ = 0, step_ = 0, piece_ = 0, bytes_ = 0;
  io::TensorFile pending_;
};

class TraceReader {
 public:
  // Throws Error{kBadInput} when the folder holds no trace.
  explicit TraceReader(std::filesystem::path folder);

  const TraceFacts& facts() const { return facts_; }
  std::int64_t steps() const { return steps_; }
  // Names of the backends that were recorded.
  const std::vector<std::string>& backends() const { return backends_; }
  // The values of the leaves before a step.
  Feeds leaves(std::int64_t step) const;
  // Pieces are read one by one as their names are asked for, in the order of writing. Throws
  // Error{kBadInput} for a name that the step does not have, and for any file of the step whose
  // checksums are wrong, including the file of leaves that only the next step would begin with.
  void begin(std::int64_t step);
  const Tensor& at(const std::string& name);

 private:
  bool open_next();

  std::filesystem::path folder_;
  TraceFacts facts_;
  std::vector<std::string> backends_;
  std::int64_t steps_ = 0, step_ = 0, piece_ = 0;
  io::TensorFile current_;
};

// A number that identifies a graph by its text.
std::string graph_mark(const Graph& graph);

// The inputs of a step and, for the first step, the values of the leaves before it: one function
// records them, the other replaces those of the subject and the trace.
void record_inputs(TraceWriter& trace, std::int64_t number, const SubjectStep& step,
                   const BackendTrace& truth);
void replay_inputs(TraceReader& trace, std::int64_t number, SubjectStep& step, BackendTrace& truth);
// Records the outputs of a node, in its declared types; absent ones are not written.
void record_outputs(TraceWriter& trace, std::string_view whose, const Node& node,
                    std::span<const Tensor> outputs);
std::vector<Tensor> replay_outputs(TraceReader& trace, std::string_view whose, const Node& node);

}  // namespace keel::compare
