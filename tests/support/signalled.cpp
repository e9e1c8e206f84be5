#include "tests/support/signalled.h"

#include <csignal>
#include <utility>

namespace keel::test {
namespace {

class SignalledStream final : public task::Stream {
 public:
  SignalledStream(std::unique_ptr<task::Stream> rows, std::shared_ptr<SignalAt> signal)
      : rows_(std::move(rows)), signal_(std::move(signal)) {}
  const std::string& source() const override { return rows_->source(); }
  std::int64_t rows() const override { return rows_->rows(); }
  std::int64_t steps(std::uint32_t epoch) override { return rows_->steps(epoch); }
  double items(std::uint32_t epoch, std::int64_t step) override {
    return rows_->items(epoch, step);
  }
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override {
    signal_->count();
    return rows_->at(epoch, step);
  }
  const task::Batch& pick(std::span<const std::int64_t> rows) override { return rows_->pick(rows); }
  std::vector<task::Sizes> shapes() const override { return rows_->shapes(); }

 private:
  std::unique_ptr<task::Stream> rows_;
  std::shared_ptr<SignalAt> signal_;
};

class SignalledSplits final : public task::Splits {
 public:
  SignalledSplits(std::shared_ptr<const task::Splits> splits, std::shared_ptr<SignalAt> signal)
      : splits_(std::move(splits)), signal_(std::move(signal)) {}
  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions& options) const override {
    return std::make_unique<SignalledStream>(splits_->stream(split, options), signal_);
  }

 private:
  std::shared_ptr<const task::Splits> splits_;
  std::shared_ptr<SignalAt> signal_;
};

}  // namespace

void (*sigterm_handler())(int) {
  struct sigaction present {};
  sigaction(SIGTERM, nullptr, &present);
  return present.sa_handler;
}

void SignalAt::count() {
  if (++read < at || at == 0 || was_raised || sigterm_handler() == outer) return;
  was_raised = true;
  std::raise(SIGTERM);
}

task::Prepared Signalled::prepare(const task::DataRequest& request,
                                  const task::Assets* known) const {
  task::Prepared prepared = MnistMlp::prepare(request, known);
  prepared.splits = std::make_shared<SignalledSplits>(std::move(prepared.splits), signal_);
  return prepared;
}

train::Job signalled(std::shared_ptr<SignalAt> signal, const Settings& settings) {
  return job_of(std::make_unique<Signalled>(std::move(signal)),
                Settings{"data.source=" + small_digits().string(), "model.hidden=8",
                         "train.batch=64", "train.epochs=2"} +
                    settings);
}

}  // namespace keel::test
