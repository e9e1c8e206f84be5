// What every task of the zoo provides: its data, its network, its metrics and its options. Training
// and evaluation know a task only through this.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/nn/net.h"
#include "frontend/task/batch.h"
#include "frontend/task/metric.h"
#include "src/core/nearest.h"
#include "src/graph/option.h"

namespace keel::task {

struct DataRequest {
  std::string source = "builtin";  // "builtin", or a folder with the real data
  std::int64_t train_rows = 0;     // use only the first rows; 0: all
  std::uint64_t seed = 0;          // of generated data and of random splits
};

// The values of a model's inputs in a graph, by name.
class Inputs {
 public:
  explicit Inputs(std::vector<NamedValue> values) : values_(std::move(values)) {}
  // Throws Error{kUsage} for a name that is not there.
  Value operator[](std::string_view name) const {
    const auto found = std::ranges::find(values_, name, &NamedValue::name);
    check(found != values_.end(), ErrorKind::kUsage, "inputs: none is called '{}'", name);
    return found->value;
  }

 private:
  std::vector<NamedValue> values_;
};

struct Outputs {
  Value loss_sum;                            // (): the sum over the batch's items
  std::vector<Metric> metrics = {};          // those of Model::metrics() that a graph counts
  std::vector<NamedValue> predictions = {};  // what scorer and decoder need of every row
};

using OptionValues = std::vector<std::pair<std::string, std::string>>;

// What a model takes from its training data besides weights, such as a vocabulary: texts by name.
// Checkpoints keep them.
using Assets = std::map<std::string, std::string>;

class Model {
 public:
  virtual ~Model() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;

  // Options by name, as text. Setting throws Error{kUsage} for an unknown name, with the nearest
  // known one, and for a value that is not of its kind. Whether all fit together is asked once
  // they are set: validate() throws Error{kUsage} naming the option, what was expected and got.
  virtual void set_option(std::string_view key, std::string_view value) = 0;
  virtual OptionValues options() const = 0;
  virtual std::vector<OptionFact> facts() const = 0;
  virtual void validate() const = 0;

  // Reads the training data and takes from it what the network depends on. Called before a graph is
  // built, unless the assets are known from a checkpoint.
  virtual void prepare(const DataRequest&) {}
  virtual Assets assets() const { return {}; }
  // Throws Error{kBadInput} naming the asset when it is missing or damaged.
  virtual void set_assets(const Assets&) {}

  // What a batch of train.batch is counted in: "rows" or "tokens".
  virtual std::string_view batch_unit() const { return "rows"; }
  // What Batch::items counts: "rows", or "tokens" where the loss is a mean over them.
  virtual std::string_view item_unit() const { return "rows"; }
  virtual std::unique_ptr<Splits> load(const DataRequest& request) const = 0;
  // The forms in which the task may have its data in that folder, as options that load() depends on
  // ("corpus", "babi"), the likeliest first. The folder may be looked into for what they depend on.
  virtual std::vector<OptionValues> data_forms(const std::string& /*folder*/) const { return {{}}; }
  // The inputs of a batch of these sizes, in the order of Batch::values.
  virtual std::vector<Input> inputs(const Sizes& sizes) const = 0;
  // Sizes that a batch of so many rows or tokens may have, for building a graph without data.
  virtual Sizes sizes(std::int64_t batch) const = 0;
  virtual Outputs build(nn::Net& net, const Inputs& in) const = 0;
  // Networks that a decoder of this model asks for by Batch::network, where a search goes through
  // its own rather than through build(): their inputs, in the order of Batch::values, and their
  // predictions. They share the parameters of build(); what one run leaves to later ones is in
  // leaves made by Graph::derived, whose names say on which of the sizes their shapes depend.
  virtual std::vector<Input> search_inputs(std::string_view network, const Sizes&) const {
    fail(ErrorKind::kUsage, "{}: no network of a search is called '{}'", name(), network);
  }
  virtual std::vector<NamedValue> build_search(nn::Net&, std::string_view network, const Sizes&,
                                               const Inputs&) const {
    fail(ErrorKind::kUsage, "{}: no network of a search is called '{}'", name(), network);
  }
  // What evaluation says besides the loss. The first decides which weights are the best.
  virtual std::vector<MetricInfo> metrics() const = 0;
  // The names of the classes, of a task that puts each row into one of them: then build() gives
  // their "logits" as a prediction, and one of the inputs is "label".
  virtual std::vector<std::string> class_names() const { return {}; }
  // Gives the metrics that no graph counts; null: there are none.
  virtual std::unique_ptr<Scorer> scorer() const { return nullptr; }
  // Answers to lines that a user gives, of which there may be none; null: this model has nothing to
  // say of lines. Throws Error{kBadInput}, "standard input: line N", for lines that it cannot read.
  virtual std::unique_ptr<Decoder> decoder(std::span<const std::string> /*lines*/) const {
    return nullptr;
  }
  // The same of lines in the middle of an input, the first of which has the number `first`, from 1
  // on; null: this model has to have all lines at once.
  virtual std::unique_ptr<Decoder> portion_decoder(std::span<const std::string> /*lines*/,
                                                   std::int64_t /*first*/) const {
    return nullptr;
  }
  // What a user is to know before lines are answered; empty: nothing.
  virtual std::string note_on_lines() const { return {}; }
};

// The options half of a model: a struct with fields(), each with a meaning and a range, and
// validate() for what the ranges do not say, whose errors begin with the name of an option.
template <class Options>
class ModelWithOptions : public Model {
  static_assert(all_documented<Options>());

 public:
  void set_option(std::string_view key, std::string_view value) override {
    std::vector<std::string> names;
    for (const auto& [name, unused] : options()) names.push_back(name);
    try {
      check(set_field(options_, key, value), ErrorKind::kUsage, "{}", unknown_name(key, names));
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

  std::vector<OptionFact> facts() const override { return option_facts(options_); }

  void validate() const override {
    try {
      check_ranges(options_);
      options_.validate();
    } catch (const Error& error) {
      fail(ErrorKind::kUsage, "model.{}", error.what());
    }
  }

 protected:
  Options options_;
};

}  // namespace keel::task
