// The interface of every task of the zoo: its options, its data and its network. Training and
// evaluation know a task only through this.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/task/network.h"
#include "src/core/nearest.h"
#include "src/graph/option.h"

namespace keel::task {

struct DataRequest {
  std::string source = "builtin";  // "builtin", or a folder with the real data
  std::int64_t train_rows = 0;     // use only the first rows; 0: all
  std::uint64_t seed = 0;          // for generated data and random splits
  // The one split that is read, to evaluate on it; absent: all of them. The files of other splits
  // may then be missing, and a file in place of a folder is that split, whole.
  std::optional<Split> only = std::nullopt;

  bool wants(Split split) const { return !only || *only == split; }
  // Whether the source is a file that is the one split, whole.
  bool is_whole_file() const {
    std::error_code ignored;
    return only && std::filesystem::is_regular_file(source, ignored);
  }
};

using OptionValues = std::vector<std::pair<std::string, std::string>>;

// The result of Task::prepare.
struct Prepared {
  std::shared_ptr<const Network> network;
  std::shared_ptr<const Splits> splits;
};

class Task {
 public:
  virtual ~Task() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;

  // Options by name, as text. set_option() throws Error{kUsage} for an unknown name, with the
  // nearest known one, and for a value of the wrong kind. Once all are set, validate() checks that
  // they fit together: it throws Error{kUsage} naming the option, what was expected and got.
  virtual void set_option(std::string_view key, std::string_view value) = 0;
  virtual OptionValues options() const = 0;
  virtual std::vector<OptionFact> facts() const = 0;
  virtual void validate() const = 0;

  // The unit of train.batch: "rows" or "tokens".
  virtual std::string_view batch_unit() const { return "rows"; }
  // The unit of Batch::items: "rows", or "tokens" where the loss is a mean over them.
  virtual std::string_view item_unit() const { return "rows"; }
  // The metrics of an evaluation besides the loss. The first decides which weights are the best.
  virtual std::vector<MetricInfo> metrics() const = 0;
  // The layouts in which `folder` may hold the task's data, the likeliest first, each as values of
  // those options that prepare() depends on: {{"corpus", "babi"}}, say. The task may look into the
  // folder to find them. Empty: the task makes its data and takes no folder.
  virtual std::vector<OptionValues> data_forms(const std::string& /*folder*/) const { return {{}}; }

  // Reads the training data, once, and makes the network for them. The test split is read when its
  // stream is made. With `known`, the assets of a checkpoint, the network is the checkpoint's, and
  // words, classes and the like keep their numbers. Throws as the task's readers do, and
  // Error{kBadInput} for data that do not fit `known`.
  virtual Prepared prepare(const DataRequest& request, const Assets* known = nullptr) const = 0;
  // The network of a checkpoint. Throws Error{kBadInput} naming the asset that is missing or
  // damaged.
  virtual std::shared_ptr<const Network> restore(const Assets& assets) const = 0;
};

// The options half of a task. Options is a struct with fields(), each with a meaning and a range,
// and validate() for what ranges cannot say; errors of validate() begin with an option's name.
template <class Options>
class TaskWithOptions : public Task {
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
