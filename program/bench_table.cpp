// keel bench table
#include <nlohmann/json.hpp>

#include "bench/table_step.h"
#include "program/bench_common.h"
#include "program/common.h"
#include "program/processor.h"

namespace keel::cli {
namespace {

std::vector<std::string> row_text(const std::string& what, const bench::Timing& t,
                                  const bench::Timing& whole) {
  return {what, fmt::format("{:.3f}", t.median * 1e3), fmt::format("{:.3f}", t.p10 * 1e3),
          fmt::format("{:.3f}", t.p90 * 1e3), fmt::format("{:.2f}", whole.median / t.median)};
}

std::string text_of(const bench::TableStep& step) {
  return table_text({{"gradient", "median ms", "p10", "p90", "times as fast"},
                     row_text("whole", step.whole, step.whole),
                     row_text("rows", step.rows, step.whole),
                     row_text("rows, lazy", step.lazy, step.whole)});
}

}  // namespace

int run_bench_table(const TableBenchArgs& args) {
  const auto backend = make_backend(args.run);
  const bench::TableCase table{args.vocabulary, args.width, args.ids,
                               parse_choice<optim::Optimizer>(args.optimizer)};
  const bench::TableStep step = bench::bench_table(*backend, table, args.rounds);
  if (args.run.json) {
    print_json({{"processor", processor_text()},
                {"backend", backend->description()},
                {"vocabulary", table.vocabulary},
                {"width", table.width},
                {"ids", table.ids},
                {"optimizer", args.optimizer},
                {"whole", time_json(step.whole)},
                {"rows", time_json(step.rows)},
                {"lazy", time_json(step.lazy)}});
    return 0;
  }
  print(fmt::format("a table of {} x {}, {} ids, {}, {}\n{}\n{}", table.vocabulary, table.width,
                    table.ids, args.optimizer, backend->description(), processor_text(),
                    text_of(step)));
  return 0;
}

}  // namespace keel::cli
