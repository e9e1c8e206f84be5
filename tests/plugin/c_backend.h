// A backend that runs norms through keel/norm.h on an emulated GPU, so that keel's own comparisons
// judge the C interface.
#pragma once

#include "src/runtime/host_backend.h"
#include "tests/plugin/c_plan.h"

namespace keel::test {

// Its memory is that of GPU `device` of the emulator, which host code reaches, too: ops that are no
// norms run on the backend `others`.
class CBackend : public HostBackend {
 public:
  CBackend(int device, Backend& others) : device_(device), others_(others) {}
  std::string_view name() const override { return "keel_norm"; }
  std::string description() const override { return "keel/norm.h on an emulator of CUDA"; }
  Prepared prepare(const NodeContext& context) override;
  std::unique_ptr<Memory> allocate(std::int64_t bytes) override;
  std::unique_ptr<Memory> allocate_growing(std::int64_t bytes) override { return allocate(bytes); }
  // Runs of plans so far.
  std::int64_t runs() const { return *runs_; }

 private:
  int device_;
  Backend& others_;
  std::shared_ptr<std::int64_t> runs_ = std::make_shared<std::int64_t>(0);
};

}  // namespace keel::test
