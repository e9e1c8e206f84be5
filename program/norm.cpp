// keel norm: one normalization layer on arrays of the caller's own.
#include <nlohmann/json.hpp>
#include <set>

#include "program/common.h"
#include "program/norm_arrays.h"
#include "program/outputs.h"
#include "program/single_norm.h"
#include "src/runtime/program.h"
#include "src/runtime/variables.h"

namespace keel::cli {
namespace {

using io::Arrays;

nn::Mode mode_from_name(const std::string& name) {
  if (name == "eval") return nn::Mode::kEvaluate;
  return name == "probe" ? nn::Mode::kProbe : nn::Mode::kTrain;
}

class NormRun {
 public:
  explicit NormRun(const NormArgs& args)
      : norm_(nn::Norm::parse(args.norm, "", args.options)),
        mode_(mode_from_name(args.mode)),
        seed_(seed_of(args.seed)),
        dtype_(dtype_from_name(args.dtype)),
        backend_(make_backend(args.run)),
        variables_(*backend_, 0),
        path_(args.in),
        given_(read_norm_arrays(args.in, dtype_)) {
    for (const auto& [name, array] : given_) unused_.insert(name);
  }

  const Arrays& run() {
    const std::vector<std::string> prefixes = step_prefixes(given_, path_);
    for (const std::string& prefix : prefixes) {
      for (const char* name : {"x", "dy", "mask"}) unused_.erase(prefix + name);
    }
    for (std::int32_t i = 0; i < std::int32_t(prefixes.size()); ++i) {
      run_step(prefixes[std::size_t(i)], i);
    }
    if (!prefixes[0].empty()) store_states("");
    return results_;
  }

  const nn::Norm& norm() const { return norm_; }
  const Backend& backend() const { return *backend_; }

 private:
  // The array of that name, or none.
  const Tensor* find(const std::string& name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? nullptr : &found->second;
  }

  void run_step(const std::string& prefix, std::int32_t step) {
    const Tensor& x = given_.at(prefix + "x");
    const Tensor *dy = find(prefix + "dy"), *mask = find(prefix + "mask");
    check(x.shape().rank() >= 1, ErrorKind::kBadInput,
          "[norm] {}: {}x: expected at least one axis, got a number", path_, prefix);
    if (dy) expect_shape(prefix + "dy", x.shape(), *dy);
    if (mask) expect_mask(prefix + "mask", x.shape(), *mask);
    prepare(prefix, {{dtype_, x.shape()}, dy != nullptr, mask != nullptr});
    program_->feed("step", Tensor::of<std::int32_t>({}, {step}));
    program_->feed("x", x);
    if (dy) program_->feed("dy", *dy);
    if (mask) program_->feed("mask", *mask);
    for (const char* name : {"x", "dy", "mask"}) given_.erase(prefix + name);  // they may be large
    program_->run();
    for (const NamedValue& output : layer_->graph.outputs()) {
      results_[prefix + output.name] = program_->fetch(output.name);
    }
    store_states(prefix);
  }

  // Makes a program for this type of step, unless that of the step before does.
  void prepare(const std::string& prefix, const NormStep& step) {
    if (program_ && step == step_) return;
    const bool is_first = !program_;
    step_ = step;
    program_.reset();
    make_layer(prefix);
    variables_.declare(layer_->graph);
    if (is_first) take_leaves();
    program_ = std::make_unique<Program>(*backend_, variables_, layer_->graph);
  }

  // Where some x fits the norm's options, it is the array that does not.
  void make_layer(const std::string& prefix) {
    try {
      layer_.emplace(norm_, mode_, seed_, step_);
    } catch (const Error& error) {
      if (!takes_some_x(norm_, mode_)) throw;
      fail(ErrorKind::kBadInput, "[norm] {}: {}x: {}", path_, prefix, error.what());
    }
    expect_leaves_fit(prefix);
  }

  // Parameters and states from the caller's arrays; every array must be used.
  void take_leaves() {
    std::vector<std::string> known{"x", "dy"};
    if (norm_.takes_mask()) known.push_back("mask");
    for (Value v : layer_->leaves()) {
      const std::string& name = known.emplace_back(layer_->array_name(v));
      const auto found = given_.find(name);
      if (found == given_.end()) continue;
      expect_shape(name, layer_->graph.shape(v), found->second);
      write_leaf(v, name, found->second);
      unused_.erase(name);
    }
    if (unused_.empty()) return;
    fail(ErrorKind::kBadInput, "[norm] {}: array {}: expected only {}", path_, *unused_.begin(),
         fmt::join(known, ", "));
  }

  void write_leaf(Value leaf, const std::string& name, const Tensor& value) {
    try {
      variables_.write(layer_->leaf(leaf), value);
    } catch (const Error& error) {
      fail(error.kind(), "[norm] {}: {}: {}", path_, name, error.what());
    }
  }

  // Parameters and states are those of the first step.
  void expect_leaves_fit(const std::string& prefix) const {
    for (Value v : layer_->leaves()) {
      const auto first = variables_.all().find(layer_->leaf(v));
      if (first == variables_.all().end()) continue;
      const Shape &expected = first->second.type.shape, &got = layer_->graph.shape(v);
      check(got == expected, ErrorKind::kBadInput,
            "[norm] {}: {}x {}: expected {} {} as for s0.x, got {}", path_, prefix,
            step_.x.shape.text(), layer_->array_name(v), expected.text(), got.text());
    }
  }

  void expect_shape(const std::string& name, const Shape& expected, const Tensor& got) const {
    check(got.shape() == expected, ErrorKind::kBadInput, "[norm] {}: {}: expected {}, got {}",
          path_, name, expected.text(), got.shape().text());
  }

  void expect_mask(const std::string& name, const Shape& x, const Tensor& mask) const {
    const bool image = x.rank() == 4;
    check(norm_.takes_mask() && !image, ErrorKind::kBadInput,
          "[norm] {}: {}: expected none for {}, got {}", path_, name,
          image ? "images" : norm_.name(), mask.type().text());
    check(mask.dtype() == DType::kU8, ErrorKind::kBadInput,
          "[norm] {}: {}: expected u1 or bool, got {}", path_, name, given_type(mask));
    expect_shape(name, Shape(x.sizes().first(std::size_t(x.rank() - 1))), mask);
  }

  void store_states(const std::string& prefix) {
    for (Value v : layer_->states) {
      results_[prefix + layer_->array_name(v)] = variables_.read(layer_->leaf(v));
    }
  }

  nn::Norm norm_;
  nn::Mode mode_;
  std::uint64_t seed_;
  DType dtype_;
  std::unique_ptr<Backend> backend_;
  Variables variables_;
  std::string path_;
  Arrays given_, results_;
  std::set<std::string> unused_;
  std::optional<SingleNorm> layer_;
  std::unique_ptr<Program> program_;
  NormStep step_;
};

void show(const NormRun& run, const Arrays& results, bool json) {
  nlohmann::ordered_json types;
  std::vector<std::vector<std::string>> rows{{"array", "type"}};
  for (const auto& [name, array] : results) {
    types[name] = array.type().text();
    rows.push_back({name, array.type().text()});
  }
  if (!json) return print(table_text(rows));
  print_json({{"norm", run.norm().name()},
              {"options", run.norm().options()},
              {"backend", run.backend().description()},
              {"arrays", types}});
}

}  // namespace

int run_norm(const NormArgs& args) {
  expect_apart({{"--out", args.out}}, {args.in});
  NormRun run(args);
  const Arrays& results = run.run();
  io::write_npz(args.out, results);
  show(run, results, args.run.json);
  return 0;
}

}  // namespace keel::cli
