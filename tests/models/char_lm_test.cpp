// Transformer-XL on bytes: what a symbol's loss depends on, memory, and evaluations of other
// lengths.
#include <cstring>
#include <optional>

#include "frontend/train/evaluator.h"
#include "models/char_lm/model.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"
#include "tests/models/helpers.h"
#include "tests/models/segment_run.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

using test::operator+;

// A small network with large weights, so that what differs shows.
XlOptions small_xl(std::int64_t memory) {
  return {.symbols = 7,
          .layers = 2,
          .width = 8,
          .heads = 2,
          .feed_forward = 12,
          .memory = memory,
          .dropout = 0,
          .init_deviation = 0.5,
          .init = [](std::int64_t) { return nn::normal(0.5); }};
}

class XlRun : public SegmentRun {
 public:
  XlRun(Backend& backend, const XlOptions& options)
      : SegmentRun(backend, [&options](nn::Net& net, Value input, Value begins) {
          const XlHidden hidden = xl_hidden(net, options, input, begins);
          return xl_logits(net, hidden.states, hidden.table);
        }) {}
};

TEST_CASE("char_lm: later symbols change no bit of an earlier symbol's logits") {
  const auto backend = make_backend(default_backend());
  for (const bool pre : {false, true}) {
    XlOptions options = small_xl(9);
    options.place = pre ? nn::NormPlace::kPre : nn::NormPlace::kPost;
    const auto symbols = some_symbols(60);
    for (const std::int64_t from : {1, 17, 39}) {
      auto other = symbols;
      for (std::int64_t i = 20 + from; i < 60; ++i)
        other[std::size_t(i)] = 6 - other[std::size_t(i)];
      XlRun a(*backend, options), b(*backend, options);
      a.logits({1, 20, part(symbols, 0, 20)});
      b.logits({1, 20, part(symbols, 0, 20)});
      const Tensor x = a.logits({1, 40, part(symbols, 20, 40), false});
      const Tensor y = b.logits({1, 40, part(other, 20, 40), false});
      CHECK(std::memcmp(x.data(), y.data(), std::size_t(from * 7) * sizeof(float)) == 0);
      CHECK(std::memcmp(x.data(), y.data(), std::size_t(x.bytes())) != 0);
    }
  }
}

TEST_CASE("char_lm: a text in segments with enough memory is the text in one segment") {
  const auto backend = make_backend("reference");
  const auto symbols = some_symbols(24);
  for (const bool pre : {false, true}) {
    XlOptions options = small_xl(32);
    options.place = pre ? nn::NormPlace::kPre : nn::NormPlace::kPost;
    XlRun whole(*backend, options);
    const Tensor expected = whole.logits({1, 24, symbols});
    for (const std::int64_t length : {1, 5, 8}) {
      CAPTURE(length);
      XlRun parts(*backend, options);
      for (std::int64_t first = 0; first < 24; first += length) {
        const std::int64_t count = std::min<std::int64_t>(length, 24 - first);
        const Tensor got = parts.logits({1, count, part(symbols, first, count), first == 0});
        for (std::int64_t e = 0; e < got.elements(); ++e) {
          CHECK(got.at(e) == doctest::Approx(expected.at(first * 7 + e)).epsilon(1e-12));
        }
      }
    }
  }
}

TEST_CASE("char_lm: the memory is the last inputs of every layer, whatever the segment") {
  const auto backend = make_backend("reference");
  const XlOptions options = small_xl(6), longer = small_xl(40);
  const auto symbols = some_symbols(20);
  XlRun all(*backend, longer);
  all.logits({1, 20, symbols});
  // The rows of a layer's memory, from the end back.
  const auto ends = [](const Tensor& memory, std::int64_t count) {
    std::vector<double> values;
    for (std::int64_t e = memory.elements() - count * 8; e < memory.elements(); ++e) {
      values.push_back(memory.at(e));
    }
    return values;
  };
  for (const std::int64_t length : {2, 4, 10, 20}) {
    CAPTURE(length);
    XlRun run(*backend, options);
    for (std::int64_t first = 0; first < 20; first += length) {
      run.logits({1, length, part(symbols, first, length), first == 0});
    }
    CHECK(run.carry("filled").at(0) == 6);
    // The first layer's inputs are the embeddings, which do not depend on what was remembered.
    CHECK(ends(run.carry("layer1/memory"), 6) == ends(all.carry("layer1/memory"), 6));
  }
}

TEST_CASE("char_lm: the clamp is the last distance with an embedding of its own") {
  const auto backend = make_backend("reference");
  const auto symbols = some_symbols(8);
  // The second of two segments: its last symbol sees distances 0 to 7.
  const auto second = [&](std::int64_t clamp) {
    XlOptions options = small_xl(4);
    options.clamp = clamp;
    XlRun run(*backend, options);
    run.logits({1, 4, part(symbols, 0, 4)});
    return run.logits({1, 4, part(symbols, 4, 4), false});
  };
  const Tensor free = second(0), near = second(6);
  test::check_close(second(7), free, 1e-14);
  test::check_close(second(20), free, 1e-14);
  // Only the last symbol sees a distance beyond 6.
  for (std::int64_t e = 0; e < 21; ++e) CHECK(std::abs(near.at(e) - free.at(e)) < 1e-12);
  double change = 0;
  for (std::int64_t e = 21; e < 28; ++e) change += std::abs(near.at(e) - free.at(e));
  CHECK(change > 1e-6);
}

TEST_CASE("char_lm: an empty memory is as none, and a lane that begins anew forgets") {
  const auto backend = make_backend("reference");
  const XlOptions none = small_xl(0), some = small_xl(5);
  const auto symbols = some_symbols(8);
  XlRun without(*backend, none), with(*backend, some);
  const Segment first{2, 4, symbols}, again{2, 4, symbols, true};
  const Tensor expected = without.logits(first);
  for (int time = 0; time < 2; ++time) test::check_close(with.logits(again), expected, 1e-14);
  const Tensor goes_on = with.logits({2, 4, symbols, false});
  CHECK(std::abs(goes_on.at(3) - expected.at(3)) > 1e-3);
}

// The summed loss of a segment in training, and the table's gradient.
struct Trained {
  double loss = 0;
  Tensor d;
};

class TrainedXl {
 public:
  explicit TrainedXl(Backend& backend) : variables_(backend, 3), carries_(backend) {
    Graph g;
    nn::Net net{.graph = g, .dtype = DType::kF64};
    const Value input = g.input("input", {DType::kI32, {1, 6}});
    const XlHidden hidden = xl_hidden(net, options_, input, g.input("begins", {DType::kU8, {1}}));
    const Value logits = xl_logits(net, ops::reshape(g, hidden.states, {6, 8}), hidden.table);
    const Value loss = ops::cross_entropy(g, logits, g.input("target", {DType::kI32, {6}})).sum;
    g.mark_output("loss", loss);
    g.mark_output("d", gradient(g, loss, std::vector{hidden.table})[0]);
    program_.emplace(backend, variables_, g, CompileOptions{.carries = &carries_});
  }
  Trained run(const std::vector<std::int32_t>& symbols, std::int64_t first) {
    program_->feed("input", Tensor::of<std::int32_t>({1, 6}, part(symbols, first, 6)));
    program_->feed("target", Tensor::of<std::int32_t>({6}, part(symbols, first + 1, 6)));
    program_->feed("begins", Tensor::of<std::uint8_t>({1}, std::vector<std::uint8_t>{first == 0}));
    program_->run();
    return {program_->scalar("loss"), program_->fetch("d")};
  }
  Variables& variables() { return variables_; }
  Carries& carries() { return carries_; }

 private:
  XlOptions options_ = small_xl(5);
  Variables variables_;
  Carries carries_;
  std::optional<Program> program_;
};

TEST_CASE("char_lm: the gradient of the memory is exactly 0") {
  const auto backend = make_backend("reference");
  TrainedXl xl(*backend);
  const auto symbols = some_symbols(13);
  xl.run(symbols, 0);
  const std::map<std::string, Tensor> memory = xl.carries().read();
  const Tensor d = xl.run(symbols, 6).d;
  const Tensor table = xl.variables().read("embedding/table", true);
  const auto slope = [&](std::int64_t e, bool keeps) {
    const auto loss_at = [&](double step) {
      Tensor moved = table.clone();
      moved.as<double>()[std::size_t(e)] += step;
      xl.variables().write("embedding/table", moved);
      if (keeps) {
        xl.carries().write(memory);
      } else {
        xl.run(symbols, 0);
      }
      return xl.run(symbols, 6).loss;
    };
    return (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
  };
  double follows = 0;  // how far the memory's own share would move the slope
  for (std::int64_t e = 0; e < d.elements(); ++e) {
    CAPTURE(e);
    CHECK(d.at(e) == doctest::Approx(slope(e, true)).epsilon(1e-6));
    follows = std::max(follows, std::abs(slope(e, false) - d.at(e)));
  }
  CHECK(follows > 1e-2);
}

TEST_CASE("char_lm: every parameter has a gradient, before and after norms and without") {
  for (const char* setting : {"model.norm=layernorm", "model.norm=none", "model.place=pre",
                              "model.norm=adanorm", "model.norm=powernorm", "model.memory=0"}) {
    CAPTURE(setting);
    CHECK(idle_parameters(small_job({setting, "train.batch=6", "model.init_deviation=0.3"},
                                    "char_lm")) == std::set<std::string>{});
  }
}

TEST_CASE("char_lm: the gradient of the whole network by central differences" *
          doctest::test_suite("slow")) {
  for (const char* setting : {"model.place=post", "model.place=pre"}) {
    CAPTURE(setting);
    check_gradients(
        small_job({setting, "model.init_deviation=0.3", "model.width=8", "model.dropout=0",
                   "model.memory=0"},  // which would go on from run to run
                  "char_lm"),
        3);
  }
}

TEST_CASE("char_lm: the paper's network has its 41.06 million parameters") {
  Graph g;
  nn::Net net{.graph = g};
  const XlOptions options{.dropout = 0};
  const XlHidden hidden = xl_hidden(net, options, g.input("input", {DType::kI32, {1, 1}}),
                                    g.input("begins", {DType::kU8, {1}}));
  xl_logits(net, hidden.states, hidden.table);
  const std::int64_t d = 512, layer = 5 * d * d + 2 * 2048 * d + 2048 + d + 4 * d;
  CHECK(count_parameters(g) == 12 * layer + 205 * d + 205 + 2 * d);
  CHECK(std::abs(double(count_parameters(g)) / 41.06e6 - 1) < 0.001);
}

// Bits per character of the test part with the weights of one seed.
double bpc_of(const Settings& settings) {
  const auto backend = make_backend("reference");
  const train::Job job = small_job(Settings{"model.init_deviation=0.3"} + settings, "char_lm");
  Variables variables(*backend, 5);
  train::Evaluator evaluator(*backend, variables, job);
  const auto rows = job.splits().stream(task::Split::kTest, train::evaluation_options(job));
  const train::Evaluation e = evaluator.run(*rows);
  CHECK(e.items == 149);  // symbols of the part, but for the first
  return e.at("bpc");
}

TEST_CASE("char_lm: other lengths with the same context give the same bits per character") {
  const auto with = [](const Settings& more, int segment, int memory) {
    return bpc_of(more + Settings{fmt::format("model.evaluation_segment={}", segment),
                                  fmt::format("model.evaluation_memory={}", memory)});
  };
  const Settings whole{"model.evaluation_lanes=1"};
  const double expected = with(whole, 100, 200);
  for (const int segment : {7, 32, 140}) {
    CHECK(with(whole, segment, 200) == doctest::Approx(expected).epsilon(1e-12));
  }
  CHECK(std::abs(with(whole, 7, 5) - expected) > 1e-6);
  // Each symbol sees 9 of them, however many stand in its segment.
  const Settings same{"model.same_length=true", "model.clamp=4"};
  const double near = with(same, 3, 9);
  for (const int segment : {1, 8, 20}) {
    CHECK(with(same, segment, 9) == doctest::Approx(near).epsilon(1e-12));
  }
  CHECK(std::abs(near - with({"model.same_length=true"}, 3, 9)) > 1e-9);
}

TEST_CASE("char_lm: refusals of options") {
  const auto refused = [](const Settings& settings, std::string_view text) {
    test::check_refused([&] { small_job(settings, "char_lm"); }, text, "", ErrorKind::kUsage);
  };
  refused({"model.norm=instancenorm"},
          "model.norm: expected one that does not take statistics over a segment");
  refused({"model.scaling=layernorm"}, "model.scaling: expected layerscaling or groupscaling");
  refused({"model.heads=3"}, "model.heads: expected a divisor of the width, got 3");
  refused({"model.width=15"}, "model.width: expected an even number");
  refused({"model.width=1028", "model.heads=4"}, "model.heads: expected heads of at most 256");
  refused({"model.same_length=true", "model.evaluation_memory=0"},
          "model.same_length: expected a memory in evaluation");
  refused({"model.alphabet=letters"}, "model.alphabet");
  refused({"model.place=pre", "model.norm=batchnorm"},
          "model.norm: with place = pre and a memory expected a norm of single positions");
  refused({"model.parts=whole"}, "[char_lm] model.parts: expected 90-5-5 for a training");
  CHECK_NOTHROW(
      small_job({"model.place=pre", "model.norm=batchnorm", "model.memory=0"}, "char_lm"));
}

// A file of 400 bytes, of which 360 train, with one byte replaced.
std::string letters_with(std::size_t place, char byte) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += char('a' + i % 5);
  text[place] = byte;
  return text;
}

TEST_CASE("char_lm: the alphabet is that of the training part, which the other parts must keep") {
  const test::TempDir temp;
  const auto job = [&](std::size_t place, const Settings& more = {}) {
    test::write_bytes(temp / "text", letters_with(place, 'Z'));
    return small_job(Settings{"data.source=" + (temp / "text").string()} + more, "char_lm");
  };
  CHECK_NOTHROW(job(300, {"data.train_rows=100"}));
  for (const std::size_t place : {365, 395}) {
    test::check_refused([&] { job(place); }, "[char_lm]",
                        "expected one of the 5 bytes of the model's alphabet, got 5a",
                        ErrorKind::kBadInput);
  }
}

}  // namespace
}  // namespace keel::models
