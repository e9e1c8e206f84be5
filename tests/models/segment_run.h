// A language model of symbols that is run on one segment after the other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/nn/net.h"
#include "src/runtime/program.h"

namespace keel::models {

struct Segment {
  std::int64_t lanes = 1, length = 1;
  std::vector<std::int32_t> input;
  bool begins = true;
};

// Symbols below 7.
inline std::vector<std::int32_t> some_symbols(std::int64_t count, std::uint32_t stream = 1) {
  std::vector<std::int32_t> symbols;
  const Philox random(9, stream);
  for (std::int64_t i = 0; i < count; ++i) {
    symbols.push_back(std::int32_t(random.below(std::uint64_t(i), 7)));
  }
  return symbols;
}

inline std::vector<std::int32_t> part(const std::vector<std::int32_t>& all, std::int64_t first,
                                      std::int64_t count) {
  return {all.begin() + first, all.begin() + first + count};
}

// Runs segments one after the other on a backend with the weights of one seed.
class SegmentRun {
 public:
  // The logits (lanes, length, symbols) of input i32 (lanes, length) and begins u8 (lanes).
  using Logits = std::function<Value(nn::Net&, Value input, Value begins)>;
  SegmentRun(Backend& backend, Logits logits, DType dtype = DType::kF32)
      : backend_(backend),
        logits_(std::move(logits)),
        dtype_(dtype),
        variables_(backend, 3),
        carries_(backend) {}

  // The logits of a segment (lanes, length, symbols), in evaluation.
  Tensor logits(const Segment& segment) {
    Graph g;
    nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate, .dtype = dtype_};
    const Value input = g.input("input", {DType::kI32, {segment.lanes, segment.length}});
    g.mark_output("logits", logits_(net, input, g.input("begins", {DType::kU8, {segment.lanes}})));
    Program program(backend_, variables_, g, {.carries = &carries_});
    program.feed("input", Tensor::of<std::int32_t>({segment.lanes, segment.length}, segment.input));
    program.feed("begins", Tensor::of<std::uint8_t>(
                               {segment.lanes}, std::vector<std::uint8_t>(
                                                    std::size_t(segment.lanes), segment.begins)));
    program.run();
    return program.fetch("logits");
  }
  Tensor carry(const std::string& name) { return std::move(carries_.read().at(name)); }
  Variables& variables() { return variables_; }

 private:
  Backend& backend_;
  Logits logits_;
  DType dtype_;
  Variables variables_;
  Carries carries_;
};

}  // namespace keel::models
