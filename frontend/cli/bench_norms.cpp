// keel bench norms
#include <charconv>
#include <nlohmann/json.hpp>

#include "bench/norm_bench.h"
#include "frontend/cli/common.h"
#include "frontend/nn/norm.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCopy =
    "a plain copy on the backend's threads that reads and writes as many bytes together; onednn: "
    "blocks of 64 KiB by memcpy, from 16 MiB on by stores that bypass the caches";

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
    if (facts.name != "none") names.push_back(facts.name);
  }
  return names;
}

Json to_json(const bench::Timing& t) {
  return {{"median", t.median}, {"p10", t.p10}, {"p90", t.p90}};
}

Json to_json(const bench::NormPass& pass) {
  Json json{{"bytes", pass.bytes},
            {"seconds", to_json(pass.norm)},
            {"copy_seconds", to_json(pass.copy)},
            {"gigabytes_per_second", pass.gigabytes_per_second()},
            {"ratio", pass.ratio()}};
  if (pass.peer) {
    json["onednn_seconds"] = to_json(*pass.peer);
    json["onednn_ratio"] = pass.peer_ratio();
  }
  return json;
}

Json to_json(const bench::NormBench& b) {
  Json json{{"norm", b.norm}, {"shape", b.x.sizes()}};
  if (!b.refusal.empty()) {
    json["refusal"] = b.refusal;
  } else {
    json["forward"] = to_json(b.forward);
    json["backward"] = to_json(b.backward);
  }
  return json;
}

std::vector<std::string> table_row(const bench::NormBench& b) {
  std::vector<std::string> row{b.norm, fmt::format("{}", fmt::join(b.x.sizes(), "x"))};
  for (const bench::NormPass* pass : {&b.forward, &b.backward}) {
    row.push_back(fmt::format("{:.1f}", pass->norm.median * 1e6));
    row.push_back(fmt::format("{:.1f}", pass->gigabytes_per_second()));
    row.push_back(fmt::format("{:.2f}", pass->ratio()));
    row.push_back(pass->peer ? fmt::format("{:.2f}", pass->peer_ratio()) : "-");
  }
  return row;
}

std::string text_of(const std::vector<bench::NormBench>& results) {
  std::vector<std::vector<std::string>> rows{{"norm", "shape", "forward us", "GB/s", "ratio",
                                              "oneDNN", "backward us", "GB/s", "ratio", "oneDNN"}};
  std::string refusals;
  for (const bench::NormBench& b : results) {
    if (b.refusal.empty()) {
      rows.push_back(table_row(b));
    } else {
      refusals += fmt::format("{} {}: {}\n", b.norm, b.x.text(), b.refusal);
    }
  }
  return table_text(rows) + refusals +
         fmt::format(
             "ratio: the speed over that of {}\n"
             "oneDNN: the same of its own layer or batch normalization primitive\n",
             kCopy);
}

}  // namespace

int run_bench_norms(const NormBenchArgs& args) {
  std::vector<Shape> shapes;
  for (const std::string& text : args.shapes) shapes.push_back(parse_shape(text));
  if (shapes.empty()) shapes = bench::norm_bench_shapes();
  const std::vector<std::string> norms = args.norms.empty() ? all_norms() : args.norms;
  for (const std::string& norm : norms) {
    check(!nn::Norm::parse(norm).is_none(), ErrorKind::kUsage, "bench norms: 'none' does nothing");
  }
  const auto backend = make_backend(args.run);
  std::vector<bench::NormBench> results;
  for (const std::string& norm : norms) {
    for (const Shape& shape : shapes) {
      results.push_back(bench::bench_norm(*backend, norm, shape, args.rounds));
    }
  }
  if (!args.run.json) {
    print(backend->description() + "\n" + text_of(results));
    return 0;
  }
  Json rows = Json::array();
  for (const bench::NormBench& b : results) rows.push_back(to_json(b));
  print_json({{"backend", backend->description()},
              {"rounds", args.rounds},
              {"copy", kCopy},
              {"norms", rows}});
  return 0;
}

}  // namespace keel::cli
