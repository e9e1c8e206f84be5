// Loss and metrics of a model on a whole split, in evaluation mode.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/train/feeder.h"
#include "frontend/train/job.h"
#include "src/runtime/communicator.h"
#include "src/runtime/program_cache.h"

namespace keel::train {

struct Measured {
  task::MetricInfo info;
  double value = 0;
  double sum = 0, count = 0;  // that it was formed of; both 0 when a scorer gave it
};

// How far a share of `count` items may be off, in percent: its binomial standard error, which is 0
// for a share of none or of all, and the share that would show none with a probability of 5 %.
struct ShareError {
  double standard, limit;
};
ShareError error_of_share(double share, double count);

// How many answers a decoder found, and in how many seconds.
struct Decoded {
  std::int64_t answers = 0;
  double seconds = 0;
};

struct Evaluation {
  double loss = 0;  // sum over the items / items
  std::vector<Measured> metrics = {};
  std::int64_t rows = 0;
  double items = 0;
  std::optional<Decoded> decoded = {};

  // Whether the loss is a number; with no items there is none, which is no fault of the network.
  bool is_finite() const { return items == 0 || std::isfinite(loss); }
  // Throws Error{kUsage} for a metric that is not there.
  double at(std::string_view metric) const;
};

// "error 2.50 % +- 0.35, loss 0.0747, 2000 rows": a share has its binomial standard error, one of
// nothing a limit: "error 0.00 % (below 1.19, confidence 95 %), ...". Items that are not rows are
// counted, too: "ppl 120.31, loss 4.7901, 2576 rows, 82429 tokens".
std::string text(const Evaluation& evaluation);

// Thrown where a signal ends an evaluation.
struct Interrupted {
  int signal = 0;
};

// The order in which an evaluation reads a split: every row, in order.
task::StreamOptions evaluation_options(const Job& job);

class Evaluator {
 public:
  // `arena`: shared with others whose programs run at other times; null: it has its own.
  Evaluator(Backend& backend, Variables& variables, const Job& job, Arena* arena = nullptr);

  // From now on the batches of an evaluation are shared out over these ranks, which all call run().
  // The sums are added up in the order of batches, so that the numbers are those of one process. A
  // network whose batches go on from each other, or that has a scorer, stays with each rank; so
  // does a search that its decoder cannot share out. All ranks get the numbers of rank 0.
  void share(Communicator& ranks);

  // From now on every rank asks between two batches, and between some of a search, whether
  // `received` gives a signal. Once any rank has one, run() throws Interrupted in all of them.
  void heed(std::function<int()> received) { received_ = std::move(received); }

  // Creates the parameters and states of evaluation, so that a checkpoint can be loaded into them.
  void declare();
  // Evaluates every row once, and runs all that the stream's decoder asks for. Throws Error{kUsage}
  // when the stream gives a row twice or leaves one out.
  Evaluation run(task::Stream& stream) { return run(stream, stream.decoder().get()); }
  // The same with a decoder of that split that the caller reads afterwards, or with none. The
  // network's predictions for every batch also go to `onlooker`, if there is one.
  Evaluation run(task::Stream& stream, task::Decoder* decoder, task::Scorer* onlooker = nullptr);
  // Runs the batches that a decoder asks for, until it asks for none or, between two of them,
  // `stops` returns true; the decoder's results are then incomplete.
  Decoded decode(task::Decoder& decoder, const std::function<bool()>& stops = {});
  // Calls `tell` after every batch of an evaluation with the number of batches done and the number
  // that there are: 0 while a decoder searches, since nobody knows when a search ends.
  using Tell = std::function<void(std::int64_t done, std::int64_t of)>;
  void tell(Tell tell) { tell_ = std::move(tell); }
  // The number of programs compiled so far: one for each network and each of the sizes met.
  std::int64_t programs() const;
  // The size of their carries, in bytes of the backend's memory.
  std::int64_t carried_bytes() const { return carries_.bytes(); }

 private:
  // One of the networks: its inputs, and its programs for the sizes met so far.
  struct Network {
    Feeder feeder;
    ProgramCache programs;
  };

  Network& network_of(const task::Batch& batch);
  // Computes, from the current parameters, the values that are kept from run to run.
  void keep();
  Program& run_batch(const task::Batch& batch);
  Decoded decode_with(task::Decoder& decoder, const std::function<bool()>& stops = {});
  // Whether this rank or any other has more to run; `mine`: whether this one has. A rank that is
  // done first goes on to ask, for all of them must.
  bool goes_on(bool mine) const;
  // A search of an evaluation, shared out over the ranks if the decoder can.
  Decoded search(task::Decoder& decoder);

  Backend& backend_;
  Variables& variables_;
  const Job& job_;
  Arena own_arena_;
  Arena& arena_;                             // of all programs
  Carries carries_;                          // reset for every split and every search
  Communicator* ranks_ = nullptr;            // null: there is only this process
  bool shares_batches_ = false;              // a rank runs its own, or else all
  std::map<std::string, Network> networks_;  // by Batch::network
  bool may_keep_ = true;                     // the model was not yet asked, or it keeps something
  std::unique_ptr<Program> keep_;
  Tell tell_;
  std::function<int()> received_;  // null: nothing ends an evaluation
};

}  // namespace keel::train
