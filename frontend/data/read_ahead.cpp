#include "frontend/data/read_ahead.h"

#include <cstring>
#include <system_error>
#include <utility>

#include "src/core/error.h"

namespace keel::data {
namespace {

// Tensors of the same types are written over, and take no memory.
void copy(const Batch& from, Batch& to) {
  to.sizes = from.sizes;
  to.rows = from.rows;
  to.items = from.items;
  to.first_row = from.first_row;
  to.network = from.network;
  to.values.resize(from.values.size());
  for (std::size_t i = 0; i < from.values.size(); ++i) {
    const Tensor& value = from.values[i];
    if (to.values[i].type() == value.type()) {
      std::memcpy(to.values[i].data(), value.data(), std::size_t(value.bytes()));
    } else {
      to.values[i] = value.clone();
    }
  }
}

}  // namespace

ReadAhead::ReadAhead(std::unique_ptr<Stream> inner) : inner_(std::move(inner)) {
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

const Batch& ReadAhead::at(std::uint32_t epoch, std::int64_t step) {
  const Place place{epoch, step};
  auto lock = when_idle();
  if (!std::exchange(has_made_, false) || place_ != place) make(place);
  if (made_.error) std::rethrow_exception(std::exchange(made_.error, nullptr));
  std::swap(current_, made_.batch);
  place_ = place;
  working_ = true;
  lock.unlock();
  changed_.notify_all();
  return current_;
}

const Batch& ReadAhead::pick(std::span<const std::int64_t> rows) {
  const auto lock = when_idle();
  copy(inner_->pick(rows), current_);
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
      place_ = after(place_);
      make(place_);
      has_made_ = true;
    } catch (...) {
      has_made_ = false;  // nobody knows what comes next, so nobody asked for it
    }
    lock.lock();
    working_ = false;
    changed_.notify_all();
  }
}

ReadAhead::Place ReadAhead::after(Place place) {
  if (place.step + 1 < inner_->steps(place.epoch)) return {place.epoch, place.step + 1};
  return {place.epoch + 1, 0};
}

void ReadAhead::make(Place place) {
  made_.error = nullptr;
  try {
    copy(inner_->at(place.epoch, place.step), made_.batch);
  } catch (...) {
    made_.error = std::current_exception();
  }
}

}  // namespace keel::data
