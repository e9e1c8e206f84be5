#include "bench/norm_peer.h"

#include <algorithm>

#include "backends/backend_config.h"

#ifdef KEEL_ONEDNN
#include "backends/onednn/primitives_norm_peer.h"
#endif

namespace keel::bench {
#ifdef KEEL_ONEDNN
namespace {

using onednn::NormPeerSpec;

class Builder {
 public:
  Builder(Backend& backend, const NormPeerSpec& spec)
      : backend_(backend), spec_(spec), peer_(std::make_unique<NormPeer>()) {}

  std::unique_ptr<NormPeer> build(const Tensor& x_value, const Tensor& dy_value) {
    const Shape parameters{spec_.parameters()}, statistics{spec_.statistics()};
    const TensorRef x = filled(x_value), dy = filled(dy_value), gain = tensor(parameters),
                    bias = tensor(parameters), dgain = tensor(parameters),
                    dbias = tensor(parameters), mean = tensor(statistics),
                    variance = tensor(statistics);
    std::fill_n(gain.as<float>(), gain.elements(), 1.f);
    peer_->y = tensor(spec_.x);
    peer_->dx = tensor(spec_.x);
    const bool is_made =
        bind(onednn::make_norm_peer, {{x, gain, bias}, {peer_->y, mean, variance}},
             peer_->forward) &&
        bind(onednn::make_norm_peer_backward,
             {{x, dy, mean, variance, gain, bias}, {peer_->dx, dgain, dbias}}, peer_->backward);
    return is_made ? std::move(peer_) : nullptr;
  }

 private:
  std::byte* allocate(std::int64_t bytes) {
    return peer_->memory.emplace_back(backend_.allocate(bytes))->address();
  }
  TensorRef tensor(const Shape& shape) {
    const TensorType type{DType::kF32, shape};
    return {allocate(type.bytes()), type};
  }
  TensorRef filled(const Tensor& value) {
    const TensorRef ref = tensor(value.shape());
    peer_->memory.back()->upload(0, value.data(), value.bytes());
    return ref;
  }
  // Created on the backend's threads, for as many as they are. False: refused.
  bool bind(Prepared (*make)(const NormPeerSpec&), Binding binding, Kernel& kernel) {
    Prepared prepared;
    const Kernel create = [&] { prepared = make(spec_); };
    backend_.run({&create, 1});
    if (!prepared.refusal.empty()) return false;
    binding.workspace = allocate(prepared.workspace);
    kernel = prepared.bind(binding);
    return true;
  }

  Backend& backend_;
  NormPeerSpec spec_;
  std::unique_ptr<NormPeer> peer_;
};

}  // namespace

std::unique_ptr<NormPeer> make_norm_peer(Backend& backend, const std::string& norm, const Tensor& x,
                                         const Tensor& dy) {
  const bool is_layer = norm == "layernorm";
  if (backend.name() != "onednn" || (!is_layer && norm != "batchnorm")) return nullptr;
  const auto kind = is_layer ? NormPeerSpec::kLayer : NormPeerSpec::kBatch;
  return Builder(backend, {.kind = kind, .x = x.shape()}).build(x, dy);
}
#else

std::unique_ptr<NormPeer> make_norm_peer(Backend&, const std::string&, const Tensor&,
                                         const Tensor&) {
  return nullptr;
}
#endif

}  // namespace keel::bench
