// A graph compiled for one backend: optimised, planned, and bound to fixed addresses. Running it
// allocates nothing and looks nothing up.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/passes/memory_plan.h"
#include "src/runtime/arena.h"
#include "src/runtime/carries.h"
#include "src/runtime/constants.h"
#include "src/runtime/joined_rows.h"
#include "src/runtime/kept_values.h"
#include "src/runtime/program_memory.h"
#include "src/runtime/variables.h"

namespace keel {

struct CompileOptions {
  bool optimize = true;        // run the passes; off shows the graph as it was built
  bool join_rows = true;       // run neighbours of norms on the same rows (joined_rows.h)
  bool verify_passes = false;  // verify the graph after every pass, and not only after the last
  // Name of a scalar output. If it is not finite after a run, no leaf is updated. Optimizer steps
  // check this themselves: they update nothing when their scale is not finite.
  std::string guard = {};
  // Memory shared with other programs of the same backend; null: the program has its own. In a
  // shared arena, fed inputs and outputs are valid only until another program is fed or run, and an
  // input that was never fed has an undefined value.
  Arena* arena = nullptr;
  // The carries that this program shares with other programs of the same backend;
  // null: the program has its own.
  Carries* carries = nullptr;
  // Name of the output that is the loss. If given, what is computed before the part of the loss is
  // computed again after it (recompute, src/passes/pipeline.h), so that instances which take turns
  // in one arena keep little.
  std::string recompute_before = {};
};

// Returns the graph after the passes, including those that the backend asks for: the graph that a
// program really runs. `verify_each` is that of PassOptions.
Graph optimized_for(const Backend& backend, const Graph& graph, bool verify_each = false);

// Whether a node is a leaf or a view.
bool runs_no_kernel(const Node& node);

struct NodeTime {
  std::string name, op;    // of kernels that run together: of the norm; "add + layer_norm"
  double nanoseconds = 0;  // median over the profiled runs
};

struct NonFinite {
  std::string node, what;  // "fc1/matmul", "output 0 of matmul"
  std::int64_t element = 0;
  double value = 0;
  std::string inputs = {};  // what an op read: "x (2, 3) up to 17, fc1/weight (3, 4) up to 3e+38"
  std::int64_t part = 0;    // of the run (run_part)
};

class Program {
 public:
  // Throws Error{kBackendMissing} with the node and the reason if the backend refuses a node.
  Program(Backend& backend, Variables& variables, const Graph& graph,
          const CompileOptions& options = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Sets an input; the value is converted to the storage type. Throws Error{kUsage} for an unknown
  // name or another shape. The value stays until the next feed, unless the arena is shared.
  void feed(const std::string& name, const Tensor& value);
  // The same from the bytes of a value in the storage type; copies them once.
  void feed(const std::string& name, std::span<const std::byte> stored);
  // Whether the graph has an input of this name.
  bool takes(const std::string& name) const { return inputs_.contains(name); }
  void run();
  // Where instances of the graph meet (src/ops/shard_parts.h) they run in parts: read() the output
  // collective(i) after part i of all instances, and feed() the input of that name before part i +
  // 1.
  std::int64_t collectives() const { return std::ssize(collectives_); }
  const std::string& collective(std::int64_t i) const { return collectives_[std::size_t(i)].name; }
  void run_part(std::int64_t i);
  // Instances may take turns in one arena. Each has a block of kept_bytes() to itself; before its
  // part i it calls enter_part, feeds the collectives of collectives_read(i), and after it
  // leave_part.
  std::int64_t kept_bytes() const { return kept_.bytes; }
  std::span<const std::int64_t> collectives_read(std::int64_t i) const {
    return kept_.collectives[std::size_t(i)];
  }
  void enter_part(std::int64_t i, const Memory& kept);
  void leave_part(std::int64_t i, Memory& kept);
  // The part that computes an output.
  std::int64_t part_of(const std::string& name) const;
  // Returns an output of the last run, in its declared type or, if `stored`, in the storage type.
  // If the output is a leaf that the run updated, its value is the new one.
  Tensor fetch(const std::string& name, bool stored = false) const;
  double scalar(const std::string& name) const;
  // Copies an output of the last run, in the storage type, to `to`, which is of its size.
  void read(const std::string& name, std::span<std::byte> to) const;
  // The address of an output of the last run, in the storage type.
  TensorRef output_ref(const std::string& name) const { return ref(output(name)); }

  // Runs `repeats` >= 1 times, updates and carries included, with a clock between kernels.
  std::vector<NodeTime> profile(int repeats);
  // Runs the graph once more, node by node, and reports the first leaf or node with a non-finite
  // value. Variables and carries do not change: nodes that would overwrite one are skipped. What
  // all instances gave in a collective counts as a result of theirs, and not as a leaf.
  std::optional<NonFinite> find_non_finite();

  const Graph& graph() const { return graph_; }
  const MemoryPlan& plan() const { return plan_; }
  // The block that the plan's arena lies in.
  const Memory& arena() const { return *arena_; }
  ProgramMemory memory() const;
  int kernels() const { return static_cast<int>(kernels_.size()); }

 private:
  // A place `offset` bytes into a memory block; an absent value has no block.
  struct Place {
    Memory* memory = nullptr;
    std::int64_t offset = 0;
  };

  void prepare(std::vector<Prepared>& prepared, std::vector<std::int64_t>& workspaces);
  void place(Variables& variables, const CompileOptions& options);
  void place_leaf(Variables& variables, Carries& carries, int index);
  void enter_carries();
  void find_collectives();
  int first_reader(const std::string& input) const;
  void join(const std::vector<Prepared>& prepared, const CompileOptions& options);
  void bind(const std::vector<Prepared>& prepared, const CompileOptions& options);
  Binding binding_of(int node) const;
  std::pair<std::string, std::string> text_of(std::size_t kernel) const;
  void add_kernel(Kernel kernel, const NodeSpan& nodes, std::int64_t bytes);
  Place place_of(Value v) const;
  TensorRef ref(Value v) const;
  TensorType stored_type(Value v) const;
  Tensor download(Value v) const;
  Value input(const std::string& name) const;
  Value output(const std::string& name) const;
  std::optional<NonFinite> inspect_outputs(int node) const;
  std::optional<NonFinite> inspect_run(int node, const Kernel& kernel);
  bool overwrites_leaf(int node) const;
  std::string inputs_text(const Node& node, const std::vector<Tensor>& values) const;

  Backend& backend_;
  Graph graph_;
  MemoryPlan plan_;
  std::shared_ptr<Memory> arena_;
  Constants constants_;
  std::unique_ptr<Carries> own_carries_;
  std::vector<Carries::Place> carries_;
  std::unordered_map<int, Memory*> leaves_;  // by node; owned by Variables and Carries
  std::vector<Kernel> kernels_;
  Kernel step_;  // all kernels as one
  struct Collective {
    std::string name;
    std::size_t end = 0;  // of the kernels before it
  };
  std::vector<Collective> collectives_;
  std::vector<Kernel> parts_;  // the kernels between collectives
  KeptValues kept_;
  std::vector<JoinedRows> joined_;      // nodes that one kernel runs, in order
  std::vector<NodeSpan> kernel_nodes_;  // the nodes of each kernel, -1 for an update by copy
  std::int64_t kernel_bytes_ = 0;       // bytes that the kernels hold
  std::unordered_map<std::string, Value> inputs_, outputs_;
};

}  // namespace keel
