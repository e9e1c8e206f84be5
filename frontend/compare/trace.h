// What a walk gave, in files: to be compared with another machine's, another build's or another
// program's.
//
// A trace is a folder. "trace.safetensors" says of what it is, in its metadata, and holds the
// values of parameters and states before the first step. The pieces "step<N>-<K>.safetensors" hold,
// by name, "feed/<input>" (random keys included), "truth/<node>:<port>", what the judge handed on,
// rounded to float32, and "<backend>/<node>:<port>", what each backend made of it.
// "step<N>-end.safetensors" holds the values of leaves after a step, and says that it is whole.
// Every file appears whole or not at all, so that a recording that was interrupted goes on with the
// first step that is not.
#pragma once

#include <filesystem>
#include <map>

#include "frontend/compare/lane.h"
#include "frontend/io/safetensors.h"

namespace keel::compare {

using TraceFacts = std::map<std::string, std::string>;

class TraceWriter {
 public:
  // Makes the folder, or goes on with the one of a trace that has the same facts. Throws
  // Error{kUsage} when there is another trace in it.
  TraceWriter(std::filesystem::path folder, TraceFacts facts);

  // How many steps are whole already, and what leaves hold after them.
  std::int64_t steps() const { return steps_; }
  Feeds leaves() const;

  // Of the first step alone: what leaves hold before it.
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
  // What leaves hold before a step.
  Feeds leaves(std::int64_t step) const;
  // Pieces are read one by one as their names are asked for, in the order of writing. Throws
  // Error{kBadInput} for a name that the step has not got, and for any file of the step whose
  // checksums are wrong, also that of leaves that only a next step would begin with.
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

// What a graph is recognized by: its text, as a number.
std::string graph_mark(const Graph& graph);

// What is fed in a step and, before the first, what leaves hold: written down, or put in place of
// what the subject and the lane have.
void record_inputs(TraceWriter& trace, std::int64_t number, const SubjectStep& step,
                   const Lane& truth);
void replay_inputs(TraceReader& trace, std::int64_t number, SubjectStep& step, Lane& truth);
// The outputs of a node, in its declared types; absent ones are not written.
void record_outputs(TraceWriter& trace, std::string_view whose, const Node& node,
                    std::span<const Tensor> outputs);
std::vector<Tensor> replay_outputs(TraceReader& trace, std::string_view whose, const Node& node);

}  // namespace keel::compare
