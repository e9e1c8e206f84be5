// The network that a task makes from its options and its training data, with all that describes it.
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
#include "frontend/task/continuation.h"
#include "frontend/task/decoder.h"
#include "frontend/task/metric.h"

namespace keel::task {

// The values of a network's inputs in a graph, by name.
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
  std::vector<Metric> metrics = {};          // those of Task::metrics() that a graph counts
  std::vector<NamedValue> predictions = {};  // what scorer and decoder need of every row
};

// Texts by name that a network takes from its training data and that are not weights, such as a
// vocabulary. Checkpoints keep them.
using Assets = std::map<std::string, std::string>;

// The text of an asset. Throws Error{kBadInput} naming it when it is not there.
inline const std::string& find_asset(const Assets& assets, const std::string& name) {
  const auto found = assets.find(name);
  check(found != assets.end(), ErrorKind::kBadInput, "expected the asset {}, got none", name);
  return found->second;
}

// The questions of a user that a network answers.
enum class Answers {
  kNone,
  kAllLines,  // lines, all at once: the meaning of a line may depend on others
  kPortions,  // lines, any consecutive ones
  kPictures,  // pictures in files: a line is the name of one (frontend/io/picture.h)
};

// Words (or sub-words) of lines, and how many of them the vocabulary of a network lacks.
struct WordCount {
  std::int64_t words = 0, unknown = 0;

  void add(std::span<const std::int32_t> numbers, std::int32_t of_unknown) {
    words += std::ssize(numbers);
    unknown += std::ranges::count(numbers, of_unknown);
  }
};

// Immutable: everything that defines a network is known when it is made.
class Network {
 public:
  virtual ~Network() = default;

  // The assets that checkpoints keep for Task::restore.
  virtual Assets assets() const { return {}; }

  // The inputs of a batch of these sizes, in the order of Batch::values.
  virtual std::vector<Input> inputs(const Sizes& sizes) const = 0;
  // The sizes of a possible batch of `batch` rows or tokens, where there are no data to ask.
  virtual Sizes sizes(std::int64_t batch) const = 0;
  virtual Outputs build(nn::Net& net, const Inputs& in) const = 0;

  // A search may run other graphs than that of build(), with the same parameters. A decoder names
  // the graph in Batch::network. search_inputs gives the inputs of that graph, in the order of
  // Batch::values, and build_search its predictions. Carries (Graph::carry) hold what one batch
  // leaves to the next; they are zeros when a decoder begins and whenever their shape changes.
  virtual std::vector<Input> search_inputs(std::string_view network, const Sizes&) const {
    fail(ErrorKind::kUsage, "no network of a search is called '{}'", network);
  }
  virtual std::vector<NamedValue> build_search(nn::Net&, std::string_view network, const Sizes&,
                                               const Inputs&) const {
    fail(ErrorKind::kUsage, "no network of a search is called '{}'", network);
  }

  // The names of the classes, for a task that puts each row into a class. Then build() gives their
  // "logits" as a prediction, and one of the inputs is "label".
  virtual std::vector<std::string> class_names() const { return {}; }
  // Makes the scorer of the metrics that no graph counts; null: there are none.
  virtual std::unique_ptr<Scorer> scorer() const { return nullptr; }

  virtual Answers answers() const { return Answers::kNone; }
  // A decoder that answers `lines`, which may be empty; `first` is the number, from 1 on, of the
  // first of them in the user's input. Not to be called where answers() is kNone. Throws
  // Error{kBadInput}, "standard input: line N", for lines that it cannot read.
  virtual std::unique_ptr<Decoder> decoder(std::span<const std::string> /*lines*/,
                                           std::int64_t /*first*/) const {
    fail(ErrorKind::kUsage, "the network has nothing to say of lines");
  }
  // Whether the network is a language model, which continues a text.
  virtual bool continues_text() const { return false; }
  // A decoder that writes the continuation; its only answer is the text that is added. Throws
  // Error{kUsage} for options out of range, and Error{kBadInput} for a prompt that the model cannot
  // read.
  virtual std::unique_ptr<Decoder> continuation(const Continuation& /*asked*/) const {
    fail(ErrorKind::kUsage, "the network does not continue a text");
  }
  // The words of lines that are answered; none where the network has no vocabulary of words.
  virtual WordCount word_count(std::span<const std::string> /*lines*/) const { return {}; }
  // A note that a user should read before lines are answered; empty: none.
  virtual std::string note_on_lines() const { return {}; }
};

// A network with the options of its task.
template <class Options>
class NetworkOf : public Network {
 public:
  explicit NetworkOf(Options options) : options_(std::move(options)) {}

 protected:
  const Options options_;
};

}  // namespace keel::task
