#include "frontend/task/rows_decoder.h"

namespace keel::task {

const Batch* RowsDecoder::next() {
  if (!stream_ || step_ == stream_->steps(0)) return nullptr;
  return batch_ = &stream_->at(0, step_++);
}

void RowsDecoder::take(const std::map<std::string, Tensor>& predictions) {
  for (std::int64_t place = 0; place < std::ssize(batch_->rows); ++place) {
    const std::int64_t row = batch_->rows[std::size_t(place)];
    if (row >= 0) answer(row, place, predictions);
  }
}

}  // namespace keel::task
