// `keel bench softmax` measures the cross entropy of a softmax over many words with its gradients:
// time and memory, beside PyTorch, which forms all logits.
#pragma once

#include <optional>

#include "bench/library_peer.h"
#include "src/graph/graph.h"
#include "src/runtime/backend.h"

namespace keel::bench {

struct SoftmaxCase {
  std::int64_t words = 10000, width = 256, rows = 4096;
  std::vector<std::int64_t> cutoffs = {};  // of an adaptive softmax
  double label_smoothing = 0;
};

// The mean of the rows' losses over x (rows, width), a table (words, width) and a bias, all of them
// parameters, as outputs with the gradients: loss, d_x, d_words, .... Labels are the input target.
Graph softmax_step(const SoftmaxCase& c);

struct SoftmaxBench {
  Timing step;
  double flop = 0;  // of the three products that all of the logits need once each
  // The most memory in use beyond x, table, bias and labels, and PyTorch's of its usable modes in
  // their order; none where the backend's memory is not the process's.
  std::optional<std::int64_t> bytes = {};
  std::optional<PeerTimes> peer = {};
  std::vector<double> peer_bytes = {};
  std::string peer_refusal = {};
};

// Words are drawn as log(rank) is uniform, so that the first tenth of them is most of a text.
// PyTorch is measured beside it unless `library` is null.
SoftmaxBench bench_softmax(Backend& backend, const SoftmaxCase& c, int rounds,
                           LibraryPeer* library = nullptr);

}  // namespace keel::bench
