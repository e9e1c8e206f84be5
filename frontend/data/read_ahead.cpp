#include "frontend/data/read_ahead.h"

#include <system_error>
#include <utility>

#include "src/core/error.h"

namespace keel::data {
namespace {

task::Batch copy_of(const task::Batch& batch) {
  task::Batch copy{batch.sizes, {}, batch.rows, batch.items};
  copy.values.reserve(batch.values.size());
  for (const Tensor& value : batch.values) copy.values.push_back(value.clone());
  return copy;
}

}  // namespace

ReadAhead::ReadAhead(std::unique_ptr<task::Stream> inner) : inner_(std::move(inner)) {
  try {
    thread_ = std::thread(&ReadAhead::work, this);
  } catch (const std::system_error& error) {
    fail(ErrorKind::kMemory, "cannot start a thread that reads ahead: {}", error.what());
  }
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// The lock, at a time at which the thread does nothing and will not begin to.
std::unique_lock<std::mutex> ReadAhead::when_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !working_; });
  return lock;
}

std::int64_t ReadAhead::steps(std::uint32_t epoch) {
  const auto lock = when_idle();
  return inner_->steps(epoch);
}

double ReadAhead::items(std::uint32_t epoch, std::int64_t step) {
  const auto lock = when_idle();
  return inner_->items(epoch, step);
}

const task::Batch& ReadAhead::at(std::uint32_t epoch, std::int64_t step) {
  const Place place{epoch, step};
  auto lock = when_idle();
  Made made = std::exchange(has_made_, false) && place_ == place ? std::move(made_) : make(place);
  if (made.error) std::rethrow_exception(made.error);
  current_ = std::move(made.batch);
  place_ = place;
  working_ = true;
  lock.unlock();
  changed_.notify_all();
  return current_;
}

const task::Batch& ReadAhead::pick(std::span<const std::int64_t> rows) {
  const auto lock = when_idle();
  current_ = copy_of(inner_->pick(rows));
  return current_;
}

void ReadAhead::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return working_ || ends_; });
    if (ends_) return;
    // While working_ stands the caller touches neither the stream nor these members.
    lock.unlock();
    try {
      place_ = behind(place_);
      made_ = make(place_);
      has_made_ = true;
    } catch (...) {
      has_made_ = false;  // nobody knows what comes next, so nobody asked for it
    }
    lock.lock();
    working_ = false;
    changed_.notify_all();
  }
}

ReadAhead::Place ReadAhead::behind(Place place) {
  if (place.step + 1 < inner_->steps(place.epoch)) return {place.epoch, place.step + 1};
  return {place.epoch + 1, 0};
}

ReadAhead::Made ReadAhead::make(Place place) {
  try {
    return {copy_of(inner_->at(place.epoch, place.step)), nullptr};
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

}  // namespace keel::data
