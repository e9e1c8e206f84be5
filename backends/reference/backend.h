// The reference backend: float64, serial, every op written like its definition. Every other backend
// is compared with it.
#pragma once

#include "src/runtime/host_backend.h"

namespace keel::reference {

class ReferenceBackend : public HostBackend {
 public:
  std::string_view name() const override { return "reference"; }
  std::string description() const override;
  // All floating values are stored in float64, whatever the graph declares.
  DType storage(DType declared) const override {
    return is_floating(declared) ? DType::kF64 : declared;
  }
  bool narrows_result(const NodeContext& context) const override;
  Prepared prepare(const NodeContext& context) override;
};

}  // namespace keel::reference
