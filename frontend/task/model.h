// What every task of the zoo provides: its data, its network and its options. The training loop
// knows a model only through this.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/data/batcher.h"
#include "frontend/data/dataset.h"
#include "frontend/nn/net.h"
#include "src/core/nearest.h"

namespace keel::task {

struct DataRequest {
  std::string source = "builtin";  // "builtin", or a folder with the real data
  std::int64_t train_rows = 0;     // use only the first rows; 0: all
  std::uint64_t seed = 0;          // of generated data
};

struct Splits {
  data::Dataset train, valid, test;
};

// How a column of the data set becomes an input of the graph: (batch, row shape) of `dtype`.
struct InputSpec {
  std::string name;  // of the graph input and of the column
  DType dtype = DType::kF32;
  Shape row;
  data::Affine affine = {};  // applied to u8 columns that become f32
};

struct Outputs {
  Value loss;    // (): mean over the batch; what is differentiated
  Value errors;  // (): how many rows are classified wrongly
};

using OptionValues = std::vector<std::pair<std::string, std::string>>;

class Model {
 public:
  virtual ~Model() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;

  // Options by name, as text. Setting throws Error{kUsage} for an unknown name, with the nearest
  // known one, and for a value that is not of its kind or out of range.
  virtual void set_option(std::string_view key, std::string_view value) = 0;
  virtual OptionValues options() const = 0;

  virtual Splits load(const DataRequest& request) const = 0;
  virtual std::vector<InputSpec> inputs() const = 0;
  // Builds the network on the inputs, in the order of inputs(), for a batch.
  virtual Outputs build(nn::Net& net, std::span<const Value> inputs) const = 0;
};

// The options half of a model: a struct with fields() and validate().
template <class Options>
class ModelWithOptions : public Model {
 public:
  void set_option(std::string_view key, std::string_view value) override {
    std::vector<std::string> names;
    for (const auto& [name, unused] : options()) names.push_back(name);
    try {
      check(set_field(options_, key, value), ErrorKind::kUsage, "{}", unknown_name(key, names));
      options_.validate();
    } catch (const Error& error) {
      fail(ErrorKind::kUsage, "model.{}: {}", key, error.what());
    }
  }

  OptionValues options() const override {
    OptionValues values;
    const auto append = [&](const auto& f) {
      values.emplace_back(f.name, attr_text(options_.*f.member));
    };
    std::apply([&](const auto&... f) { (append(f), ...); }, Options::fields());
    return values;
  }

 protected:
  Options options_;
};

}  // namespace keel::task
