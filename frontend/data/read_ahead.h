// A stream that makes its next batch while the current one is used.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "frontend/data/stream.h"

namespace keel::data {

// Gives the batches of the inner stream, in any order of asking. After each batch a thread of its
// own makes the following one (the next step, or the first step of the next epoch). If the caller
// asks for another batch, the work is thrown away, which costs only time. One thread at a time
// calls the inner stream's steps(), items() and at(); its other functions are const, and are called
// at any time. at() throws an error of the inner stream if, and only if, the batch that failed is
// asked for, and tries that batch once more when it is asked for again. To be used by one thread,
// like every stream.
class ReadAhead final : public Stream {
 public:
  explicit ReadAhead(std::unique_ptr<Stream> inner);
  // Waits for a batch that is being made.
  ~ReadAhead() override;

  const std::string& source() const override { return inner_->source(); }
  std::int64_t rows() const override { return inner_->rows(); }
  // Both wait for a batch that is being made.
  std::int64_t steps(std::uint32_t epoch) override;
  double items(std::uint32_t epoch, std::int64_t step) override;
  const Batch& at(std::uint32_t epoch, std::int64_t step) override;
  // Waits likewise, and reads no batch ahead.
  const Batch& pick(std::span<const std::int64_t> rows) override;
  std::vector<Sizes> shapes() const override { return inner_->shapes(); }
  std::vector<Skipped> skipped() const override { return inner_->skipped(); }
  std::int64_t number(std::int64_t row) const override { return inner_->number(row); }
  std::shared_ptr<task::Decoder> decoder() const override { return inner_->decoder(); }

 private:
  struct Place {
    std::uint32_t epoch = 0;
    std::int64_t step = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Made {
    Batch batch;
    std::exception_ptr error;
  };

  std::unique_lock<std::mutex> when_idle();
  void work();
  Place after(Place place);
  // Makes the batch of a place into made_.
  void make(Place place);

  const std::unique_ptr<Stream> inner_;
  Batch current_;  // of the caller

  std::mutex mutex_;  // guards all members below; who sets working_ hands them to the thread
  std::condition_variable changed_;
  bool working_ = false, ends_ = false;
  bool has_made_ = false;
  Place place_;  // of made_; while working_, the place after which it will be
  Made made_;
  std::thread thread_;  // the last member: it must not run before the others exist
};

}  // namespace keel::data
