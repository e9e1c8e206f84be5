// Tables of kernels: rows that take other types than the usual ones.
#include "src/runtime/kernel_table.h"

#include <doctest/doctest.h>

#include "src/ops/matmul.h"
#include "src/runtime/host_backend.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

constexpr DTypes kHalfOrFloat = DType::kF32 | DType::kBF16;

Prepared do_nothing(const NodeContext&) {
  return kernel_of([](const Binding&) {});
}

KernelTable table_of(const KernelTypeTable& types) {
  return make_kernel_table({{"matmul", do_nothing}}, do_nothing, types);
}

// Computes in float32, but takes the factors of products in bf16 too, and their biases in nothing
// else.
class MixedBackend : public HostBackend {
 public:
  std::string_view name() const override { return "mixed"; }
  std::string description() const override { return "for this test"; }
  Prepared prepare(const NodeContext& context) override {
    static const KernelTable table = table_of(
        {.usual = floating_kernel(DType::kF32),
         .others = {{"matmul", {{kHalfOrFloat, kHalfOrFloat, DType::kBF16}, kHalfOrFloat}}}});
    return prepare_from(table, *this, context);
  }
};

// Why the backend refuses the last node.
std::string refusal(const Graph& g) {
  return MixedBackend().prepare({g, g.node(g.size() - 1)}).refusal;
}

TEST_CASE(
    "kernel table: a row may take more types than the usual ones, by the place of the input") {
  Graph g;
  const Value half = g.input("half", {DType::kBF16, {2, 2}});
  const Value bias = g.input("bias", {DType::kF32, {2}});
  g.add(kMatmul, {half, half}, MatmulAttrs{});
  CHECK(refusal(g) == "");
  g.add(kMatmul, {half, half, bias}, MatmulAttrs{});
  CHECK(refusal(g) == "[matmul] bias: the kernel of mixed takes bf16, got f32");
  ops::add(g, half, half);
  CHECK(refusal(g) == "[add] a: the kernel of mixed takes f32, got bf16");
  ops::cast(g, half, DType::kF32);
  CHECK(refusal(g) == "[cast] x: the kernel of mixed takes f32, i32 or u8, got bf16");
  const Value whole = g.input("whole", {DType::kI32, {2, 2}});
  ops::cast(g, whole, DType::kF32);
  CHECK(refusal(g) == "");
  ops::cast(g, whole, DType::kBF16);
  CHECK(refusal(g) == "[cast] output 0: the kernel of mixed gives f32, i32 or u8, got bf16");
}

TEST_CASE("kernel table: an op without a row is refused, and a row of types needs a kernel") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {2}});
  const OpInfo other{.name = "other",
                     .infer = [](const InferContext& c) { return std::vector{c.input(0)}; }};
  g.add(other, {x});
  CHECK(refusal(g) == "no kernel for this op");
  check_refused(
      [] {
        table_of({floating_kernel(DType::kF32), {{"matmull", {}}}});
      },
      "kernel types: no kernel is called 'matmull'", "", ErrorKind::kCheckFailed);
}

TEST_CASE("kernel table: sets of types are named in one order") {
  CHECK(DTypes().text() == "nothing");
  CHECK(DTypes(DType::kU8).text() == "u8");
  CHECK((DType::kI32 | DType::kF32).text() == "f32 or i32");
  CHECK(kAnyType.text() == "f32, f64, bf16, i32 or u8");
  CHECK_FALSE(kFloatingTypes.contains(DType::kI32));
}

}  // namespace
}  // namespace keel::test
