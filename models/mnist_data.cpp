#include "models/mnist_data.h"

#include <algorithm>
#include <optional>

#include "frontend/data/digits.h"
#include "frontend/data/mnist.h"
#include "frontend/data/picture_scale.h"
#include "frontend/task/classification.h"
#include "models/class_decoder.h"

namespace keel::models {
namespace {

constexpr std::int64_t kBuiltinTrain = 12000, kBuiltinTest = 2000;

// Training and validation rows come from one file, which is read once.
struct TrainingRows {
  data::TensorDataset valid, train;
};

TrainingRows hold_out(const data::TensorDataset& all, const task::DataRequest& request,
                      Validation validation) {
  const std::int64_t rows = all.rows();
  const std::int64_t held_out = std::min<std::int64_t>(5000, rows / 12);
  check(held_out >= 1, ErrorKind::kBadInput, "{}: expected at least 12 training images, got {}",
        all.source(), rows);
  const bool first = validation == Validation::kFirst;
  std::int64_t kept = rows - held_out;
  if (request.train_rows > 0) kept = std::min(kept, request.train_rows);
  return {all.slice(first ? 0 : rows - held_out, held_out), all.slice(first ? held_out : 0, kept)};
}

data::TensorDataset digits_of(const task::DataRequest& request, data::Part part) {
  if (request.source != "builtin") return data::load_mnist(request.source, part);
  return part == data::Part::kTrain ? data::make_digits(kBuiltinTrain, request.seed, "train")
                                    : data::make_digits(kBuiltinTest, request.seed, "test");
}

// A file that is evaluated is one of these splits, whole.
TrainingRows training_rows(const task::DataRequest& request, Validation validation) {
  const data::TensorDataset all = digits_of(request, data::Part::kTrain);
  if (!request.is_whole_file()) return hold_out(all, request, validation);
  return {all.slice(0, all.rows()), all.slice(0, all.rows())};
}

}  // namespace

std::unique_ptr<data::TableSplits> load_digits(const task::DataRequest& request,
                                               Validation validation,
                                               std::vector<data::TableColumn> columns,
                                               const ChangeDigits& change) {
  const auto read = std::make_shared<std::optional<TrainingRows>>();
  const auto training = [=]() -> TrainingRows& {
    if (!*read) *read = training_rows(request, validation);
    return **read;
  };
  const auto changed = [change](data::TensorDataset part, std::string_view name) {
    return change ? change(part, name) : std::move(part);
  };
  return std::make_unique<data::TableSplits>(
      std::move(columns), [=] { return changed(std::move(training().train), "train"); },
      [=] { return changed(std::move(training().valid), "valid"); },
      [=] { return changed(digits_of(request, data::Part::kTest), "test"); });
}

std::unique_ptr<task::Decoder> digit_decoder(std::span<const std::string> files,
                                             std::vector<data::TableColumn> columns) {
  constexpr std::int64_t kSide = 28;
  const std::int64_t count = std::ssize(files);
  Tensor images(DType::kU8, {count, kSide, kSide});
  std::uint8_t* image = images.as<std::uint8_t>().data();
  for (const std::string& file : files) {
    image = std::ranges::copy(data::grey_of(io::read_picture(file), kSide), image).out;
  }
  data::TensorDataset digits("pictures");
  digits.add("image", std::move(images));
  digits.add("label", Tensor(DType::kI32, {count}));
  auto rows = std::make_shared<data::TableRows>(std::move(digits), std::move(columns));
  return std::make_unique<ClassDecoder>(UnlabelledRows{std::move(rows), count},
                                        task::numbered_classes(10));
}

}  // namespace keel::models
