#include "frontend/compare/walk/fault_planter.h"

#include <algorithm>

#include "src/graph/op_info.h"

namespace keel::compare {

FaultPlanter::FaultPlanter(std::vector<Fault> faults, const std::vector<std::string>& backends)
    : faults_(std::move(faults)) {
  for (Fault& fault : faults_) {
    if (fault.backend.empty() && !backends.empty()) fault.backend = backends.front();
    check(std::ranges::count(backends, fault.backend) == 1, ErrorKind::kUsage,
          "--inject: backend: expected {}, got '{}'", fmt::join(backends, " or "), fault.backend);
  }
}

bool FaultPlanter::consecutive_non_finite(const Fault& fault, const Site& site) {
  return fault.node == site.node.name && fault.backend == site.backend &&
         (fault.step < 0 || fault.step == site.step);
}

// The input that an output may be written over, what the node gave in the step before, or 0.
Tensor FaultPlanter::former_output(const Fault& fault, const Site& site,
                                   const Tensor& output) const {
  for (const InPlace& claim : site.node.op->in_place) {
    const Tensor* input = site.inputs[std::size_t(claim.input)];
    if (claim.output == fault.port && input && input->shape() == output.shape()) {
      return input->to(output.dtype());
    }
  }
  const auto found = former_.find(fault.text());
  const bool fits = found != former_.end() && found->second.type() == output.type();
  return fits ? found->second.clone() : Tensor(output.type());
}

void FaultPlanter::strike(const Site& site, std::vector<Tensor>& outputs) {
  for (const Fault& fault : faults_) {
    if (fault.node != site.node.name || fault.backend != site.backend) continue;
    check(!is_view(site.node) && fault.port < int(outputs.size()), ErrorKind::kUsage,
          "--inject: {}: expected a kernel with an output {}", fault.node, fault.port);
    Tensor& output = outputs[std::size_t(fault.port)];
    Tensor right = output.clone();
    if (consecutive_non_finite(fault, site)) {
      plant(fault, output, former_output(fault, site, output));
      planted_.insert(fault.text());
    }
    former_[fault.text()] = std::move(right);
  }
}

void FaultPlanter::count_non_finite(const Site& site, Tensor& value, const Tensor& former) {
  for (const Fault& fault : faults_) {
    if (!consecutive_non_finite(fault, site)) continue;
    plant(fault, value, former);
    planted_.insert(fault.text());
  }
}

void FaultPlanter::expect_planted(const std::string& subject, std::int64_t step) const {
  for (const Fault& fault : faults_) {
    check(planted_.contains(fault.text()) || fault.step > step, ErrorKind::kUsage,
          "--inject: no node of {} is called '{}'", subject, fault.node);
  }
}

}  // namespace keel::compare
