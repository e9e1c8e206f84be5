// keel bench norms
#include <charconv>
#include <nlohmann/json.hpp>

#include "backends/backends.h"
#include "bench/norm_bench.h"
#include "frontend/nn/norm.h"
#include "program/bench_common.h"
#include "program/common.h"
#include "program/processor.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCopy =
    "a plain copy on the backend's threads that reads and writes as many bytes together; onednn: "
    "blocks of 64 KiB by memcpy";

bool is_on_cuda(const RunArgs& run) {
  return (run.backend.empty() ? default_backend() : run.backend) == "cuda";
}

// "4096x512", "32x64x56x56".
Shape parse_shape(const std::string& text) {
  std::vector<std::int64_t> sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t size = 0;
    const auto [next, problem] = std::from_chars(at, end, size);
    const bool is_size = problem == std::errc{} && size >= 1 && (next == end || *next == 'x');
    check(is_size, ErrorKind::kUsage, "--shapes: expected sizes such as 4096x512, got '{}'", text);
    sizes.push_back(size);
    if (next == end) break;
    at = next + 1;
  }
  check(sizes.size() == 2 || sizes.size() == 4, ErrorKind::kUsage,
        "--shapes: expected ROWSxWIDTH or NxCxHxW, got '{}'", text);
  return Shape(sizes);
}

std::vector<std::string> all_norms() {
  std::vector<std::string> names;
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    if (facts.name != "none") names.push_back(facts.any_width());
  }
  return names;
}

Json pass_json(const bench::NormPass& pass) {
  Json json{{"bytes", pass.bytes},
            {"seconds", time_json(pass.norm)},
            {"copy_seconds", time_json(pass.copy)},
            {"gigabytes_per_second", pass.gigabytes_per_second()},
            {"ratio", pass.ratio()}};
  if (pass.streamed) {
    json["streamed_copy_seconds"] = time_json(*pass.streamed);
    json["streamed_ratio"] = pass.streamed_ratio();
  }
  if (pass.peer) {
    json["onednn_seconds"] = time_json(*pass.peer);
    json["onednn_ratio"] = pass.peer_ratio();
  }
  return json;
}

// One line of the results.
struct Row {
  int threads;  // as asked for
  bench::NormBench bench;
};

Json row_json(const Row& row, const std::string& library) {
  const bench::NormBench& b = row.bench;
  Json json{{"norm", b.norm}, {"shape", b.x.sizes()}, {"threads", row.threads}};
  if (!b.refusal.empty()) {
    json["refusal"] = b.refusal;
    return json;
  }
  json["forward"] = pass_json(b.forward);
  json["backward"] = pass_json(b.backward);
  if (b.peer) {
    const std::vector<std::string> bodies{"forward_seconds", "both_seconds"};
    json[library] = peer_json(*b.peer, bodies, "keel_both_seconds");
    if (b.peer_under_load) {
      json[library]["under_load"] = peer_json(*b.peer_under_load, bodies, "keel_both_seconds");
    }
  }
  if (!b.peer_refusal.empty()) json[library + "_refusal"] = b.peer_refusal;
  return json;
}

std::string microseconds(const bench::Timing& t) { return fmt::format("{:.1f}", t.median * 1e6); }

// Ours, the library's fastest mode, and the ratio.
void add_peer_cells(const std::optional<bench::PeerTimes>& peer, std::vector<std::string>& cells) {
  cells.push_back(peer ? microseconds(peer->ours) : "-");
  cells.push_back(peer ? microseconds(peer->fastest().bodies[1]) : "-");
  cells.push_back(peer ? peer->fastest().name : "-");
  cells.push_back(peer ? fmt::format("{:.2f}", peer->ratio()) : "-");
}

std::vector<std::string> table_row(const Row& row, const PeerArgs& peer) {
  const bench::NormBench& b = row.bench;
  std::vector<std::string> cells{b.norm, fmt::format("{}", fmt::join(b.x.sizes(), "x")),
                                 fmt::format("{}", row.threads)};
  for (const bench::NormPass* pass : {&b.forward, &b.backward}) {
    cells.push_back(microseconds(pass->norm));
    cells.push_back(fmt::format("{:.1f}", pass->gigabytes_per_second()));
    cells.push_back(fmt::format("{:.2f}", pass->ratio()));
    cells.push_back(pass->streamed ? fmt::format("{:.2f}", pass->streamed_ratio()) : "-");
    cells.push_back(pass->peer ? fmt::format("{:.2f}", pass->peer_ratio()) : "-");
  }
  if (!peer.name.empty()) add_peer_cells(b.peer, cells);
  if (peer.under_load) add_peer_cells(b.peer_under_load, cells);
  return cells;
}

// `peer` is empty where there is none.
std::string text_of(const std::vector<Row>& results, const PeerArgs& peer) {
  const std::string_view title = bench::title_of(peer.name);
  std::vector<std::vector<std::string>> rows{{"norm", "shape", "threads", "forward us", "GB/s",
                                              "ratio", "streamed", "oneDNN", "backward us", "GB/s",
                                              "ratio", "streamed", "oneDNN"}};
  for (const char* when : {"", ", under load"}) {
    if (peer.name.empty() || (*when != '\0' && !peer.under_load)) continue;
    rows[0].insert(rows[0].end(), {fmt::format("both us{}", when), fmt::format("{} us", title),
                                   "mode", fmt::format("{}/keel{}", title, when)});
  }
  std::string refusals;
  for (const Row& row : results) {
    const bench::NormBench& b = row.bench;
    if (b.refusal.empty()) {
      rows.push_back(table_row(row, peer));
    } else {
      refusals += fmt::format("{} {}: {}\n", b.norm, b.x.text(), b.refusal);
    }
    if (!b.peer_refusal.empty()) {
      refusals += fmt::format("{}, {} {}: {}\n", title, b.norm, b.x.text(), b.peer_refusal);
    }
  }
  std::string text = table_text(rows) + refusals;
  text += fmt::format(
      "ratio: the speed over that of {}\n"
      "streamed: over that of a copy past the caches, where the norm's result goes past them\n"
      "oneDNN: the ratio of its own layer or batch normalization primitive\n",
      kCopy);
  if (!peer.name.empty()) {
    text += fmt::format(
        "both, {}: forward and backward in a row, its fastest mode, and the ratio of times\n",
        title);
  }
  return text;
}

// The measurements and the backends, with a description for each number of threads.
struct Results {
  std::vector<std::string> backends, peer_versions;
  std::vector<Row> rows;
};

// All norms on all shapes, by so many threads.
void measure(const NormBenchArgs& args, int threads, const std::vector<Shape>& shapes,
             Results& results) {
  RunArgs run = args.run;
  run.threads = threads;
  const auto backend = make_backend(run);
  const auto library = start_peer(args.peer, run, *backend, kNormPeerModes);
  results.backends.push_back(backend->description());
  if (library) results.peer_versions.push_back(library->version());
  for (const std::string& norm : args.norms) {
    for (const Shape& shape : shapes) {
      results.rows.push_back(
          {threads, bench::bench_norm(*backend, norm, shape, args.rounds,
                                      {library.get(), args.is_narrow(), args.residual})});
    }
  }
}

void print_results_json(const Results& results, const NormBenchArgs& args) {
  Json rows = Json::array();
  for (const Row& row : results.rows) rows.push_back(row_json(row, args.peer.name));
  Json json{{"processor", processor_text()}, {"backends", results.backends},
            {"compute", args.compute},       {"residual", args.residual},
            {"rounds", args.rounds},         {"copy", kCopy}};
  if (!results.peer_versions.empty()) json[args.peer.name] = results.peer_versions[0];
  json["norms"] = rows;
  print_json(json);
}

}  // namespace

int run_bench_norms(NormBenchArgs args) {
  std::vector<Shape> shapes;
  for (const std::string& text : args.shapes) shapes.push_back(parse_shape(text));
  if (shapes.empty()) shapes = bench::norm_bench_shapes(is_on_cuda(args.run));
  if (args.norms.empty()) args.norms = all_norms();
  for (const std::string& norm : args.norms) {
    check(!nn::Norm::parse(norm).is_none(), ErrorKind::kUsage, "bench norms: 'none' does nothing");
  }
  Results results;
  if (args.threads.empty())
    args.threads = is_on_cuda(args.run) ? std::vector{0} : std::vector{1, 2};
  for (const int threads : args.threads) measure(args, threads, shapes, results);
  if (args.run.json) {
    print_results_json(results, args);
    return 0;
  }
  std::string text = processor_text() + "\n";
  for (const std::string& backend : results.backends) text += backend + "\n";
  if (!results.peer_versions.empty()) {
    text +=
        fmt::format("beside {} {}\n", bench::title_of(args.peer.name), results.peer_versions[0]);
  }
  if (args.is_narrow()) text += "x, dy, y and dx in bf16\n";
  if (args.residual) text += "the norm reads x + residual; this sum is a result as well\n";
  print(text + text_of(results.rows, results.peer_versions.empty() ? PeerArgs{} : args.peer));
  return 0;
}

}  // namespace keel::cli
