// Parameters and state by name, in a backend's memory. Programs compiled for different shapes and
// modes share them.
#pragma once

#include <map>
#include <string>

#include "src/runtime/backend.h"

namespace keel {

struct Variable {
  NodeKind kind = NodeKind::kParameter;  // kParameter or kState
  TensorType type;                       // as declared; stored in the backend's storage type
  std::unique_ptr<Memory> memory;
  std::optional<Bounds> bounds = {};
  bool is_cached = false;  // computed from parameters; never saved or loaded
};

class Variables {
 public:
  // `seed` keys the initial values.
  Variables(Backend& backend, std::uint64_t seed) : backend_(backend), seed_(seed) {}

  // Creates every parameter and state of the graph that does not exist yet, with its initial
  // value. Throws Error{kUsage} when one exists under another type.
  void declare(const Graph& graph);

  const std::map<std::string, Variable>& all() const { return variables_; }
  // Throws Error{kUsage} for an unknown name.
  const Variable& at(const std::string& name) const;
  // The value, in the declared type or, when `stored`, in the backend's storage type.
  Tensor read(const std::string& name, bool stored = false) const;
  // Throws Error{kBadInput} if the shape differs, if an element is outside the bounds of a state,
  // or if integers are expected and the value is floating.
  void expect_fits(const std::string& name, const Tensor& value) const;
  // Sets a value, converted to the storage type. Throws in the same cases as expect_fits.
  void write(const std::string& name, const Tensor& value);

 private:
  void store(const Variable& variable, const Tensor& value);

  Backend& backend_;
  std::uint64_t seed_;
  std::map<std::string, Variable> variables_;
};

}  // namespace keel
