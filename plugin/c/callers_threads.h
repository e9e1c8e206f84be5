// The threads of a program that calls keel/norm.h.
#pragma once

#include "backends/onednn/blocks.h"
#include "plugin/c/keel/norm.h"

namespace keel::plugin {

// A keel_executor, which has to outlive it, for kernels. Kernels do not throw: what a run() left
// undone is remembered, and told when they have ended.
class CallersThreads : public onednn::Executor {
 public:
  explicit CallersThreads(const keel_executor& executor) : executor_(executor) {}
  int threads() const override { return executor_.threads; }
  void share(std::int64_t blocks, Work work, void* argument) override;
  // Throws Error{kUsage} unless every run() has done all of its blocks.
  void check_done() const;

 private:
  const keel_executor& executor_;
  std::int64_t left_ = 0;    // blocks that no thread has done
  std::int32_t status_ = 0;  // of the caller's parallel for
};

}  // namespace keel::plugin
