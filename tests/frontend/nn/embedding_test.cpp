// Embeddings: names, initial values, padding.
#include "frontend/nn/embedding.h"

#include "src/ops/elementwise.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

Layer looking_up(std::int64_t padding_id) {
  return [=](Net& net, Value x) {
    const Embedding words(net, "words", 5, 3, {.init = ones(), .padding_id = padding_id});
    const Value ids = net.graph.constant(Tensor::of<std::int32_t>({2, 2}, {1, 4, 4, 2}));
    return ops::mul(net.graph, x, words(ids));
  };
}

TEST_CASE("embedding: a table of words, any shape of ids") {
  LayerRun run(looking_up(-1), {2, 2, 3});
  CHECK(run.parameters == std::vector<std::string>{"words/table"});
  CHECK(run.read("words/table").shape() == Shape{5, 3});
  CHECK(run.graph.node(run.graph.find_leaf("words/table")).facts.decays);
  run.program->run();
  test::check_close(run.program->fetch("y", true), test::random_normal({2, 2, 3}, 5, 2, 3), 1e-7);
  check_central_differences(run);
}

TEST_CASE("embedding: the row of padding is zeros, and looking it up gives no gradient") {
  LayerRun run(looking_up(4), {2, 2, 3});
  run.program->run();
  const Tensor table = run.read("words/table"), d = run.program->fetch("d words/table", true),
               y = run.program->fetch("y", true);
  for (std::int64_t word = 0; word < 5; ++word) {
    for (std::int64_t e = 3 * word; e < 3 * word + 3; ++e) {
      CHECK(table.at(e) == (word == 4 ? 0 : 1));
      CHECK((d.at(e) != 0) == (word == 1 || word == 2));
    }
  }
  for (std::int64_t e = 3; e < 9; ++e) CHECK(y.at(e) == 0);
}

TEST_CASE("embedding: the row of padding in another element type, and refusals") {
  Graph g;
  Net net{.graph = g, .dtype = DType::kF64};
  Tensor table(DType::kF64, {5, 3});
  const Embedding words(net, "words", 5, 3, {.padding_id = 1});
  g.node(words.table()).initializer(table, Philox(1, 2));
  for (std::int64_t e = 0; e < 15; ++e) CHECK((table.at(e) == 0) == (e / 3 == 1));
  for (std::int64_t id : {-2, 5}) {
    test::check_refused([&] { Embedding(net, "more", 5, 3, {.padding_id = id}); },
                        "[embedding] more: padding_id: expected -1 or one of 5 words, got");
  }
}

}  // namespace
}  // namespace keel::nn
