// A plan of the C interface: one op with attributes and types, ready to run on one device.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "plugin/c/request.h"
#include "plugin/c/row_windows.h"
#include "src/runtime/joined_rows.h"

namespace keel::plugin {

// Throws Error{kUsage} for a name that neither norm_ops() nor sum_ops() has.
const OpInfo& find_op(std::string_view name);

// The addresses that keel_plan_run is given, and the arrays with strides, if any.
struct Arrays {
  const void* const* inputs;
  void* const* outputs;
  void* workspace;
  const keel_arrays* strided = nullptr;
};

class Plan {
 public:
  virtual ~Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  std::span<const TensorType> outputs() const { return outputs_; }
  std::int64_t workspace() const { return workspace_; }
  // Whether a run takes an input with these strides. Throws Error{kUsage} for a place that the
  // request does not have.
  bool takes_strides(int input, const std::int64_t* strides) const;
  // Runs the op; null stands for the calling thread or the default stream. Throws Error{kUsage} for
  // an array that is missing, not aligned or not on the device, for strides that the op does not
  // take, and for arrays with strides of which an output overlaps another.
  virtual void run(const Arrays& arrays, const keel_executor* executor) const = 0;

 protected:
  // Throws Error{kUsage} for an unknown op or attribute and for types that do not fit,
  // Error{kBackendMissing} if no kernel takes them.
  Plan(const Request& request, Backend& backend);

  // The arrays with their types.
  Binding bound(const Arrays& arrays) const;
  // The arrays that are not contiguous.
  std::vector<StridedArray> strided(const Arrays& given, const Binding& arrays) const;
  void start(const Binding& arrays) const;
  // The same with arrays that are not contiguous, on so many threads.
  void start(const Binding& arrays, std::span<const StridedArray> strided, int threads) const;
  // "[layer_norm] gain", for messages.
  std::string input_text(std::size_t place) const;
  std::string output_text(std::size_t place) const;
  std::string workspace_text() const;

 private:
  void add_inputs(const Backend& backend);
  void add_op(const Request& request);
  void prepare(Backend& backend);
  void describe_arrays(const Backend& backend);
  TensorRef array_of(Value value, const Binding& arrays) const;
  Binding binding_of(int node, const Binding& arrays) const;
  // Whether it runs two kernels.
  bool is_sum() const;
  bool takes(const TensorType& array, const Layout& layout) const;
  void expect_taken(const TensorType& array, const Layout& layout, const std::int64_t* strides,
                    const std::string& what) const;

  Graph graph_;  // the inputs, then one node, or two of a sum (sums.h)
  const OpInfo& op_;
  std::vector<std::optional<TensorType>> inputs_;
  std::vector<TensorType> outputs_;
  std::vector<Value> given_, results_;  // the inputs and outputs by place
  std::vector<Prepared> prepared_;      // by node
  std::optional<JoinedRows> joined_;    // two nodes that run on the same rows
  std::int64_t workspace_ = 0;
  std::int64_t row_ = 0;  // elements of a row, 0 where all arrays have to be contiguous
  Binding blank_;         // the types of a run's arrays, without their addresses
};

// A plan on the CPU: float32 on SIMD kernels and the caller's threads, float64 on the reference.
std::unique_ptr<Plan> plan_on_host(const Request& request);

}  // namespace keel::plugin
