// Writing text: the batches that the network is asked for, and the text that comes of its logits.
#include "frontend/decode/continuation.h"

#include <numeric>

#include "tests/support/input_checks.h"

namespace keel::decode {
namespace {

using test::refuses;
using Ints = std::vector<std::int32_t>;

// Every token but the one after the last in a circle of 5 is far less likely.
std::map<std::string, Tensor> next_in_circle(const task::Batch& batch) {
  Tensor logits(DType::kF32, {1, 5});
  const auto tokens = batch.values[0].as<std::int32_t>();
  logits.as<float>()[std::size_t((tokens.back() + 1) % 5)] = 1000;
  std::map<std::string, Tensor> predictions;
  predictions.emplace("logits", std::move(logits));
  return predictions;
}

ContinuationModel circle(Ints prompt, std::int64_t longest = 8) {
  return {.network = "next",
          .prompt = std::move(prompt),
          .text_of = [](std::int32_t token) { return std::string(1, char('a' + token)); },
          .longest = longest};
}

TEST_CASE("text writer: reads the prompt, then writes token by token as they come") {
  std::string given;
  TextWriter writer(circle({0, 1, 2}),
                    {.prompt = "abc", .tokens = 6, .give = [&](std::string_view text) {
                       given += text;
                       given += '|';
                     }});
  std::vector<task::Sizes> sizes;
  Ints read, begins;
  while (const task::Batch* batch = writer.next()) {
    CHECK(batch->network == "next");
    sizes.push_back(batch->sizes);
    for (const std::int32_t token : batch->values[0].as<std::int32_t>()) read.push_back(token);
    begins.push_back(batch->values[1].as<std::uint8_t>()[0]);
    writer.take(next_in_circle(*batch));
  }
  CHECK(sizes == std::vector<task::Sizes>{{1, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  CHECK(read == Ints{0, 1, 2, 3, 4, 0, 1, 2});
  CHECK(begins == Ints{1, 0, 0, 0, 0, 0, 0});
  CHECK(given == "d|e|a|b|c|d|");
  CHECK(writer.answers() == std::vector<std::string>{"deabcd"});
  CHECK(writer.written() == 6);
}

TEST_CASE("text writer: few shapes serve prompts of all lengths") {
  for (const int length : {1, 7, 8, 21}) {
    CAPTURE(length);
    Ints prompt(std::size_t(length), 3);
    TextWriter writer(circle(prompt), {.prompt = "", .tokens = 1});
    std::int64_t read = 0;
    while (const task::Batch* batch = writer.next()) {
      const std::int64_t count = batch->sizes[1];
      CHECK((count == 8 || count == 4 || count == 2 || count == 1));
      read += count;
      writer.take(next_in_circle(*batch));
    }
    CHECK(read == length);
    CHECK(writer.answers()[0] == "e");
  }
}

TEST_CASE("text writer: without tokens to write nothing is read, and refusals") {
  TextWriter none(circle({1}), {.prompt = "b", .tokens = 0});
  CHECK(none.next() == nullptr);
  CHECK(none.answers()[0].empty());
  const auto refused = [](std::string_view text, Ints prompt, const task::Continuation& asked) {
    return refuses(ErrorKind::kUsage, text, [&] { TextWriter(circle(std::move(prompt)), asked); });
  };
  CHECK(refused("prompt: expected at least one token, got none", {}, {}));
  CHECK(refused("tokens: expected 0 or more, got -1", {1}, {.prompt = "b", .tokens = -1}));
  CHECK(refused("top_p: expected", {1}, {.prompt = "b", .sample = {.top_p = 2}}));
}

}  // namespace
}  // namespace keel::decode
