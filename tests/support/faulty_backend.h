// The reference backend with one mistake, to check that a judge of backends finds it.
#pragma once

#include <memory>
#include <string>

#include "src/runtime/host_backend.h"

namespace keel::test {

// After every run of op `op`, `size` times the first element of its first floating input is added
// to the first element of its output `output`.
struct Mistake {
  std::string op;
  int output = 0;
  double size = 1e-6;
};

class FaultyBackend : public HostBackend {
 public:
  explicit FaultyBackend(Mistake mistake);
  std::string_view name() const override { return "faulty"; }
  std::string description() const override { return judge_->description(); }
  DType storage(DType declared) const override { return judge_->storage(declared); }
  Prepared prepare(const NodeContext& context) override;

  int nodes() const { return nodes_; }  // with the mistake, prepared so far

 private:
  std::unique_ptr<Backend> judge_;
  Mistake mistake_;
  int nodes_ = 0;
};

}  // namespace keel::test
