// The attributes of every op as text: what is printed is read back exactly, to the bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "src/ops/attention.h"
#include "src/ops/attention_window.h"
#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"
#include "src/ops/conv2d.h"
#include "src/ops/dropout.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/embedding_bag.h"
#include "src/ops/filter_bank.h"
#include "src/ops/layout.h"
#include "src/ops/linear_cross_entropy.h"
#include "src/ops/loss.h"
#include "src/ops/matmul.h"
#include "src/ops/mixture_density.h"
#include "src/ops/multilinear_attention.h"
#include "src/ops/norm/ada_norm.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/norm/derf.h"
#include "src/ops/norm/detach_norm.h"
#include "src/ops/norm/dyt.h"
#include "src/ops/norm/group_norm.h"
#include "src/ops/norm/group_scaling.h"
#include "src/ops/norm/instance_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/norm/scale_norm.h"
#include "src/ops/norm/seed_norm.h"
#include "src/ops/norm/unified_norm.h"
#include "src/ops/norm/weight_norm.h"
#include "src/ops/norm_noise.h"
#include "src/ops/op_table.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/pool2d.h"
#include "src/ops/random_normal.h"
#include "src/ops/reduce.h"
#include "src/ops/relative_attention.h"
#include "src/ops/row_gradient.h"
#include "src/ops/search.h"
#include "src/ops/softmax.h"
#include "src/ops/stop_gradient.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

// Draws attributes of every type, among them the values that text loses most easily.
class Drawer {
 public:
  explicit Drawer(std::uint32_t seed) : random_(7, seed) {}

  void draw(bool& value) { value = below(2) == 1; }
  void draw(double& value) {
    constexpr double kHard[] = {-0.0,
                                1.0 / 3,
                                1e-5,
                                0.1,
                                5e-324,
                                2.2250738585072014e-308,
                                1e308,
                                std::numeric_limits<double>::infinity(),
                                9007199254740993.0};
    value = kHard[below(std::size(kHard))];
    if (below(2) == 0) return;
    do {
      value = std::bit_cast<double>(bits());
    } while (value != value);
  }
  void draw(std::int64_t& value) {
    constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t kHard[] = {0, -1, kLargest, -kLargest - 1};
    value = below(2) == 0 ? kHard[below(4)] : std::bit_cast<std::int64_t>(bits());
  }
  void draw(DType& value) { value = kAllDTypes[below(kAllDTypes.size())]; }
  void draw(Shape& value) {
    std::vector<std::int64_t> sizes(below(Shape::kMaxRank + 1));
    for (std::int64_t& size : sizes) size = std::int64_t(below(1 << 20));
    value = Shape(sizes);
  }
  void draw(std::vector<std::int64_t>& value) {
    value.resize(below(5));
    for (std::int64_t& number : value) draw(number);
  }
  template <Choice E>
  void draw(E& value) {
    value = static_cast<E>(below(choice_words(E{}).size()));
  }
  void draw(EwProgram& program) {
    program = {.inputs = int(1 + below(4)), .steps = {}};
    for (std::size_t n = 1 + below(5); n > 0; --n) {
      EwStep step{.code = static_cast<EwCode>(below(kEwCount)), .scale = {}};
      const std::size_t registers = std::size_t(program.inputs) + program.steps.size();
      for (int i = 0; i < arity(step.code); ++i) {
        step.source[std::size_t(i)] = std::int16_t(below(registers));
      }
      if (step.code == EwCode::kScale) draw_fields(step.scale);
      program.steps.push_back(step);
    }
  }
  template <class T>
  void draw_fields(T& attrs) {
    std::apply([&](const auto&... f) { (draw(attrs.*f.member), ...); }, T::fields());
  }

 private:
  std::uint64_t bits() {
    const std::uint64_t high = random_.below(next_++, 1u << 31),
                        low = random_.below(next_++, 1u << 31);
    return high << 33 ^ low << 1 ^ random_.below(next_++, 4);
  }
  std::size_t below(std::size_t n) { return random_.below(next_++, std::uint32_t(n)); }

  Philox random_;
  std::uint64_t next_ = 0;
};

bool is_same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
bool is_same(const EwProgram& a, const EwProgram& b) {
  const auto is_same_step = [](const EwStep& s, const EwStep& t) {
    return s.code == t.code && s.source == t.source && is_same(s.scale.factor, t.scale.factor) &&
           is_same(s.scale.offset, t.scale.offset);
  };
  return a.inputs == b.inputs && std::ranges::equal(a.steps, b.steps, is_same_step);
}
template <class T>
bool is_same(const T& a, const T& b) {
  if constexpr (requires { T::fields(); }) {
    return std::apply([&](const auto&... f) { return (is_same(a.*f.member, b.*f.member) && ...); },
                      T::fields());
  } else {
    return a == b;
  }
}

// The structs of all ops; one that is missing here fails the test that every op has one.
template <class... Structs>
struct List {};
using AllAttrs =
    List<NoAttrs, AdagradAttrs, AdamAttrs, AdaNormAttrs, AttentionAttrs, BatchNormAttrs,
         BatchNormBackwardAttrs, BatchRenormAttrs, BatchRenormBackwardAttrs, BroadcastAttrs,
         CastAttrs, CentredSumsAttrs, ClipGradientAttrs, ColumnSquaresAttrs, ConcatAttrs, ConvAttrs,
         ConvBackwardAttrs, CrossEntropyAttrs, DerfAttrs, DerfBackwardAttrs, DetachNormAttrs,
         DropoutAttrs, DytAttrs, DytBackwardAttrs, EmbeddingAttrs, EmbeddingBackwardAttrs,
         FilterBankAttrs, FusedAttrs, GravesAttrs, GroupIdsAttrs, GroupNormAttrs,
         GroupNormBackwardAttrs, GroupScalingAttrs, InstanceNormAttrs, InstanceNormBackwardAttrs,
         LayerNormAttrs, LayerNormBackwardAttrs, LinearLossAttrs, EmbeddingBagAttrs, MabnAttrs,
         MabnBackwardAttrs, MatmulAttrs, MixtureAttrs, MultilinearAttrs, NormNoiseAttrs, PadAttrs,
         PnVAttrs, PnVBackwardAttrs, PoolAttrs, PoolBackwardAttrs, PowerNormAttrs,
         PowerNormBackwardAttrs, RandomNormalAttrs, ReduceAttrs, RelativeAttentionAttrs,
         ReshapeAttrs, RmsNormAttrs, RmsNormBackwardAttrs, ScaleAttrs, ScaleNormAttrs,
         SeedNormAttrs, SgdAttrs, SliceAttrs, AttentionWindowAttrs, SplitAttrs, SumSquaresAttrs,
         TopKAttrs, TransposeAttrs, UncentredSumsAttrs, UnifiedNormAttrs, UnifiedNormBackwardAttrs,
         WeightNormAttrs>;

// Whether the op's attributes are a T. Then values of it, sampled, are printed and read back.
template <class T>
bool round_trips(const OpInfo& op, std::uint32_t seed) {
  if (op.attrs.find<T>() == nullptr) return false;
  T attrs;
  Drawer(seed).draw_fields(attrs);
  const std::string text = Attrs(attrs).text();
  CAPTURE(text);
  const Attrs read = attrs_from_text(op, text);
  CHECK(is_same(read.as<T>(), attrs));
  CHECK(read.text() == text);
  return true;
}

template <class... Structs>
int count_round_trips(List<Structs...>, const OpInfo& op, std::uint32_t seed) {
  return (int(round_trips<Structs>(op, seed)) + ...);
}

TEST_CASE("attributes of ops: what is printed is read back to the bit") {
  for (const OpInfo* op : all_ops()) {
    CAPTURE(op->name);
    for (std::uint32_t seed = 0; seed < 50; ++seed) {
      REQUIRE(count_round_trips(AllAttrs(), *op, seed) == 1);
    }
  }
}

TEST_CASE("attributes of ops: fields come in any order, and what is not named has its default") {
  const Attrs attrs = attrs_from_text(kPad, "value=0.5 before=[1, 0]");
  CHECK(attrs.as<PadAttrs>().before == std::vector<std::int64_t>{1, 0});
  CHECK(attrs.as<PadAttrs>().after.empty());
  CHECK(attrs.as<PadAttrs>().value == 0.5);
  CHECK(attrs_from_text(kMatmul, "") == Attrs(MatmulAttrs{}));
  CHECK(attrs_from_text(kSoftmaxBackward, "") == Attrs());
}

struct Malformed {
  const OpInfo* op;
  const char *text, *error;
};
const Malformed kMalformed[] = {
    {&kLayerNorm, "eps=x", "[layer_norm] eps: expected a number, got 'x'"},
    {&kLayerNorm, "eps=1 epsilon=2", "[layer_norm] attribute 'epsilon' is unknown; nearest: 'eps"},
    {&kLayerNorm, "eps=1 eps=2", "[layer_norm] eps: expected one value, got another, '2'"},
    {&kLayerNorm, "eps", "[layer_norm] attributes: expected NAME=VALUE, got 'eps'"},
    {&kLayerNorm, "axes=1.5", "[layer_norm] axes: expected a whole number, got '1.5'"},
    {&kSoftmaxBackward, "x=1", "[softmax_backward] expected no attributes, got 'x=1'"},
    {&kMatmul, "transpose_a=yes", "[matmul] transpose_a: expected true or false, got 'yes'"},
    {&kMatmul, "activation=gelu", "[matmul] activation: expected none or relu, got 'gelu'"},
    {&kRandomNormal, "dtype=f16",
     "[random_normal] dtype: expected f32, f64, bf16, i32 or u8, got 'f16'"},
    {&kRandomNormal, "shape=2, 3 seed=1", "[random_normal] shape: expected a shape such as (2, 3)"},
    {&kSum, "axes=[1,] keep_dims=true",
     "[sum] axes: expected whole numbers such as [1,2], got '[1,]'"},
    {&kSum, "axes=(1)", "[sum] axes: expected whole numbers such as [1,2], got '(1)'"},
};

TEST_CASE(
    "attributes of ops: malformed text is refused with the attribute, what was expected and got") {
  for (const Malformed& m : kMalformed) {
    CAPTURE(m.text);
    check_refused([&] { attrs_from_text(*m.op, m.text); }, m.error);
  }
  for (const char* text : {"(2, 3", "2, 3", "(2,, 3)", "(2, 3,)", "(2 3)", "(-1)", "(x)", "", "[2]",
                           "(1,1,1,1,1,1,1,1,1)", "(99999999999999999999)"}) {
    CAPTURE(text);
    check_refused([&] { attrs_from_text(kReshape, fmt::format("shape={}", text)); },
                  "[reshape] shape: expected a shape such as (2, 3), of at most 8 sizes",
                  fmt::format("got '{}'", text));
  }
}

TEST_CASE("attributes of ops: malformed programs are refused") {
  for (const char* text :
       {"x", "r2", "r2=", "r2=add", "r2=add(", "r2=add(r0)", "r2=add(r0,r1", "r2=add(r0,r2)",
        "r2=add(r0,r1,r1)", "r2=plus(r0,r1)", "r2=add(r0,r1)r3=neg(r2)", "r2=add(r0,r1) ",
        "r2=add(r0,r1) r4=neg(r2)", "r2=add(r0,r-1)", "r99999=neg(r0)"}) {
    CAPTURE(text);
    check_refused([&] { attrs_from_text(kFusedElementwise, fmt::format("program={}", text)); },
                  "[fused_elementwise] program: expected steps such as r2=add(r0,r1)",
                  fmt::format("got '{}'", text));
  }
  check_refused([&] { attrs_from_text(kFusedElementwise, "program=r1=scale(r0,factor=x)"); },
                "[fused_elementwise] program: factor: expected a number, got 'x'");
}

}  // namespace
}  // namespace keel::test
