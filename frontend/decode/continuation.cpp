#include "frontend/decode/continuation.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "frontend/decode/sampler.h"
#include "src/core/error.h"

namespace keel::decode {

std::vector<task::Input> continuation_inputs(const task::Sizes& sizes) {
  return {{"input", {DType::kI32, {sizes.at(0), sizes.at(1)}}},
          {"begins", {DType::kU8, {sizes[0]}}, 1}};
}

TextWriter::TextWriter(ContinuationModel model, task::Continuation asked)
    : model_(std::move(model)), asked_(std::move(asked)), waiting_(model_.prompt) {
  asked_.sample.validate();
  check(asked_.tokens >= 0, ErrorKind::kUsage, "tokens: expected 0 or more, got {}", asked_.tokens);
  check(!waiting_.empty(), ErrorKind::kUsage, "prompt: expected at least one token, got none");
}

const task::Batch* TextWriter::next() {
  if (written_ == asked_.tokens) return nullptr;
  const std::size_t left = waiting_.size() - read_, longest = std::size_t(model_.longest);
  const std::size_t count = left >= longest ? longest : std::bit_floor(left);
  const task::Sizes sizes{1, std::int64_t(count)};
  if (batch_.sizes != sizes) {
    batch_ = {.sizes = sizes, .values = {}, .rows = {0}, .items = 1, .network = model_.network};
    for (const task::Input& input : continuation_inputs(sizes)) {
      batch_.values.emplace_back(input.type);
    }
  }
  std::copy_n(waiting_.begin() + std::ptrdiff_t(read_), count,
              batch_.values[0].as<std::int32_t>().begin());
  batch_.values[1].as<std::uint8_t>()[0] = has_begun_ ? 0 : 1;
  has_begun_ = true;
  read_ += count;
  return &batch_;
}

void TextWriter::take(const std::map<std::string, Tensor>& predictions) {
  if (read_ < waiting_.size()) return;  // the prompt goes on
  const std::int32_t token = drawn_token(predictions.at("logits").as<float>(), asked_.sample,
                                         token_uniform(asked_.sample.seed, written_));
  waiting_.assign(1, token);
  read_ = 0;
  ++written_;
  const std::string text = model_.text_of(token);
  text_ += text;
  if (asked_.give) asked_.give(text);
}

}  // namespace keel::decode
