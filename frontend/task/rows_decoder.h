// A decoder for rows that the network sees once each, such as lines of a user.
#pragma once

#include <memory>
#include <optional>

#include "frontend/data/data_loader.h"
#include "frontend/task/decoder.h"

namespace keel::task {

// Gives all rows in the batches of an evaluation, and calls `answer` for each of them.
class RowsDecoder : public Decoder {
 public:
  const Batch* next() final;
  void take(const std::map<std::string, Tensor>& predictions) final;

 protected:
  // Sets the rows to ask about; batches have `batch` rows or tokens. Without rows nothing is asked.
  void ask(std::shared_ptr<const data::Dataset> rows, std::int64_t batch) {
    stream_.emplace(std::move(rows), StreamOptions{.batch = batch});
  }
  // Takes the network's predictions for a row that is at that place of the batch.
  virtual void answer(std::int64_t row, std::int64_t place,
                      const std::map<std::string, Tensor>& predictions) = 0;

 private:
  std::optional<data::DataLoader> stream_;  // nothing without rows
  std::int64_t step_ = 0;
  const Batch* batch_ = nullptr;  // the one that was given last
};

}  // namespace keel::task
