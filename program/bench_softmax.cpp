// keel bench softmax
#include <nlohmann/json.hpp>

#include "bench/softmax_bench.h"
#include "program/bench_common.h"
#include "program/common.h"
#include "program/processor.h"

namespace keel::cli {
namespace {

std::vector<std::string> row_of(const std::string& what, const bench::Timing& t,
                                std::optional<double> bytes) {
  return {what, fmt::format("{:.3f}", t.median * 1e3), fmt::format("{:.3f}", t.p10 * 1e3),
          fmt::format("{:.3f}", t.p90 * 1e3),
          bytes ? fmt::format("{:.1f}", *bytes / (1 << 20)) : "-"};
}

std::string text_of(const bench::SoftmaxBench& b) {
  std::vector<std::vector<std::string>> rows{{"", "median ms", "p10", "p90", "MiB"},
                                             row_of("keel", b.step, b.bytes)};
  std::size_t usable = 0;
  if (b.peer) {
    for (const bench::PeerMode& mode : b.peer->modes) {
      if (!mode.refusal.empty()) continue;
      std::optional<double> bytes;
      if (!b.peer_bytes.empty()) bytes = b.peer_bytes[usable++];
      rows.push_back(row_of("PyTorch's, " + mode.name, mode.bodies[0], bytes));
    }
  }
  std::string text = table_text(rows);
  text += fmt::format("three products of all logits: {:.3g} GFLOP, {:.0f} GFLOP/s of the step\n",
                      b.flop / 1e9, b.flop / 1e9 / b.step.median);
  if (b.peer) text += b.peer->text("PyTorch") + "\n";
  if (!b.peer_refusal.empty()) text += fmt::format("PyTorch: {}\n", b.peer_refusal);
  return text;
}

void print_softmax_json(const bench::SoftmaxCase& c, const std::string& backend,
                        const bench::SoftmaxBench& b) {
  nlohmann::ordered_json json{{"processor", processor_text()},
                              {"backend", backend},
                              {"words", c.words},
                              {"width", c.width},
                              {"rows", c.rows},
                              {"cutoffs", c.cutoffs},
                              {"label_smoothing", c.label_smoothing},
                              {"step", time_json(b.step)},
                              {"flop", b.flop}};
  if (b.bytes) json["bytes"] = *b.bytes;
  if (b.peer) {
    json["torch"] = peer_json(*b.peer, {"seconds"}, "keel_seconds");
    if (!b.peer_bytes.empty()) json["torch"]["bytes"] = b.peer_bytes;
  }
  if (!b.peer_refusal.empty()) json["torch_refusal"] = b.peer_refusal;
  print_json(json);
}

}  // namespace

int run_bench_softmax(const SoftmaxBenchArgs& args) {
  const BenchArgs& asked = args.bench;
  const bench::SoftmaxCase c{.words = args.words,
                             .width = args.width,
                             .rows = args.rows,
                             .cutoffs = args.cutoffs,
                             .label_smoothing = args.label_smoothing};
  const auto backend = make_backend(asked.run);
  const auto library = start_peer(asked.peer, asked.run, *backend, kWidePeerModes);
  const bench::SoftmaxBench b = bench::bench_softmax(*backend, c, asked.rounds, library.get());
  const std::string described =
      backend->description() + (library ? ", beside " + library->text() : "");
  if (asked.run.json) {
    print_softmax_json(c, described, b);
  } else {
    print(fmt::format("a softmax over {} words, {} wide, {} rows, {}\n{}\n{}", c.words, c.width,
                      c.rows, described, processor_text(), text_of(b)));
  }
  return 0;
}

}  // namespace keel::cli
