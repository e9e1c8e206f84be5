#include "models/mnist_data.h"

#include <algorithm>

#include "frontend/data/digits.h"
#include "frontend/data/mnist.h"

namespace keel::models {
namespace {

constexpr std::int64_t kBuiltinTrain = 12000, kBuiltinTest = 2000;

}  // namespace

task::Splits load_digits(const task::DataRequest& request, Validation validation) {
  const bool builtin = request.source == "builtin";
  data::TrainTest all = builtin ? data::builtin_digits(kBuiltinTrain, kBuiltinTest, request.seed)
                                : data::load_mnist(request.source);
  const std::int64_t rows = all.train.rows();
  const std::int64_t held_out = std::min<std::int64_t>(5000, rows / 12);
  check(held_out >= 1, ErrorKind::kBadInput, "{}: expected at least 12 training images, got {}",
        all.train.source(), rows);
  const bool first = validation == Validation::kFirst;
  std::int64_t kept = rows - held_out;
  if (request.train_rows > 0) kept = std::min(kept, request.train_rows);
  return {all.train.slice(first ? held_out : 0, kept),
          all.train.slice(first ? 0 : rows - held_out, held_out), std::move(all.test)};
}

}  // namespace keel::models
