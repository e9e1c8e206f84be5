// Rows of a data set as inputs of a program: order, scaling, and columns that do not fit.
#include "frontend/train/feeder.h"

#include <doctest/doctest.h>

#include "backends/reference/backend.h"
#include "src/ops/elementwise.h"
#include "tests/support/checks.h"

namespace keel::train {
namespace {

data::Dataset three_rows() {
  data::Dataset dataset("three rows");
  dataset.add("pixels",
              Tensor::of<std::uint8_t>({3, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255}));
  dataset.add("number", Tensor::of<float>({3}, {0.5f, 1.5f, 2.5f}));
  dataset.add("label", test::i32({3}, {7, 8, 9}));
  return dataset;
}

const std::vector<task::InputSpec> kInputs{
    {"pixels", DType::kF32, {4}, {.scale = 0.5f, .offset = -1}}, {"number", DType::kF32, {}}};

TEST_CASE("feeder: gathers, scales and reshapes the rows that are asked for") {
  Graph g;
  g.mark_output("p", ops::scale(g, g.input("pixels", {DType::kF32, {2, 4}}), 1));
  g.mark_output("n", ops::scale(g, g.input("number", {DType::kF32, {2}}), 1));
  reference::ReferenceBackend backend;
  Variables variables(backend, 0);
  Program program(backend, variables, g, {.optimize = false, .guard = ""});
  const data::Dataset dataset = three_rows();
  Feeder feeder(kInputs, dataset, 2);
  feeder.feed(program, std::vector<std::int64_t>{2, 0});
  program.run();
  test::check_close(program.fetch("p", true),
                    test::f64({2, 4}, {3, 3.5, 4, 126.5, -1, -0.5, 0, 0.5}), 0);
  test::check_close(program.fetch("n", true), test::f64({2}, {2.5, 0.5}), 0);
  feeder.feed(program, std::vector<std::int64_t>{1, 1});
  program.run();
  test::check_close(program.fetch("n", true), test::f64({2}, {1.5, 1.5}), 0);
}

TEST_CASE("feeder: columns that do not fit are refused") {
  const data::Dataset dataset = three_rows();
  const auto refused = [&](const task::InputSpec& spec, std::string_view part) {
    test::check_refused([&] { Feeder({spec}, dataset, 2); }, "", part);
  };
  refused({"pixels", DType::kF32, {5}}, "input pixels: expected rows of f32(5), got u8(3, 2, 2)");
  refused({"pixels", DType::kI32, {4}}, "input pixels: expected rows of i32(4)");
  refused({"number", DType::kI32, {}}, "input number:");
  refused({"label", DType::kF32, {}}, "input label:");
  refused({"nothing", DType::kF32, {}}, "nothing");
}

}  // namespace
}  // namespace keel::train
