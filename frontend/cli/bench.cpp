// keel bench
#include <nlohmann/json.hpp>

#include "bench/step_bench.h"
#include "frontend/cli/common.h"

namespace keel::cli {
namespace {

nlohmann::ordered_json to_json(const bench::Timing& t) {
  return {{"median", t.median}, {"p10", t.p10}, {"p90", t.p90}};
}

std::vector<std::string> time_row(const std::string& what, const bench::Timing& t) {
  return {what, fmt::format("{:.3f}", t.median * 1e3), fmt::format("{:.3f}", t.p10 * 1e3),
          fmt::format("{:.3f}", t.p90 * 1e3)};
}

std::string profile_text(const std::vector<NodeTime>& profile) {
  std::vector<std::vector<std::string>> rows{{"us", "op", "node"}};
  for (const NodeTime& node : profile) {
    rows.push_back({fmt::format("{:.1f}", node.nanoseconds * 1e-3), node.op, node.name});
  }
  return table_text(rows);
}

}  // namespace

int run_bench_step(const BenchArgs& args) {
  const train::Config config = make_config(args.run);
  const auto backend = make_backend(args.run);
  const bench::StepBench b = bench::bench_step(*backend, config, args.rounds);
  if (args.run.json) {
    nlohmann::ordered_json profile = nlohmann::ordered_json::array();
    for (const NodeTime& n : b.profile) {
      profile.push_back({{"node", n.name}, {"op", n.op}, {"nanoseconds", n.nanoseconds}});
    }
    print_json({{"model", args.run.model},
                {"backend", backend->description()},
                {"batch", config.train().batch},
                {"step", to_json(b.step)},
                {"products", to_json(b.products)},
                {"optimizer", to_json(b.optimizer)},
                {"copy", to_json(b.copy)},
                {"ratio", b.ratio()},
                {"profile", profile}});
    return 0;
  }
  std::string text = fmt::format("{}, batch {}, {}\n", args.run.model, config.train().batch,
                                 backend->description());
  text += table_text({{"", "median ms", "p10", "p90"},
                      time_row("step", b.step),
                      time_row("products alone", b.products),
                      time_row("optimizer alone", b.optimizer),
                      time_row("copy of its bytes", b.copy)});
  text += fmt::format("step / (products + optimizer) = {:.2f}\n", b.ratio());
  if (args.profile) text += "\n" + profile_text(b.profile);
  print(text);
  return 0;
}

int run_bench_overhead(const BenchArgs& args) {
  const bench::OverheadBench b = bench::bench_overhead(make_config(args.run), args.rounds * 20);
  if (args.run.json) {
    print_json({{"model", args.run.model},
                {"kernels", b.kernels},
                {"nanoseconds_per_kernel", b.nanoseconds_per_kernel},
                {"build_seconds", b.build_seconds},
                {"compile_seconds", b.compile_seconds}});
  } else {
    print(
        fmt::format("{}: {} kernels, {:.1f} ns a kernel on the null backend; graph built in "
                    "{:.1f} ms, compiled in {:.1f} ms\n",
                    args.run.model, b.kernels, b.nanoseconds_per_kernel, b.build_seconds * 1e3,
                    b.compile_seconds * 1e3));
  }
  return 0;
}

}  // namespace keel::cli
