#include "frontend/train/evaluator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/train/row_ledger.h"
#include "frontend/train/step_graph.h"
#include "src/runtime/scalars.h"

namespace keel::train {
namespace {

constexpr std::int64_t kBatchesBetweenAsking = 16;

// The sums of all batches on their way to the host. Their names are those of the outputs of any of
// the programs, in the same order in each.
class Sums {
 public:
  Sums(Backend& backend, std::int64_t room) : scalars_(backend, room) {}

  // Makes the sums those of the batches of all ranks, of which rank r ran each r-th.
  void gather(Communicator& ranks, std::int64_t batches) {
    const std::size_t size = names_.size(), of = std::size_t(ranks.size());
    std::vector<double> mine;
    for (std::int64_t i = 0; i < scalars_.size(); ++i) mine.push_back(scalars_.at(i));
    mine.resize((std::size_t(batches) + of - 1) / of * size);
    const std::vector<double> all = gathered(ranks, mine);
    for (std::size_t batch = 0; batch < std::size_t(batches); ++batch) {
      const double* of_rank = all.data() + batch % of * mine.size();
      const double* first = of_rank + batch / of * size;
      gathered_.insert(gathered_.end(), first, first + size);
    }
  }

  void send(const Program& program) {
    names_.clear();
    for (const NamedValue& output : program.graph().outputs()) {
      if (output.name.starts_with(kPrediction)) continue;
      names_.push_back(output.name);
      scalars_.send(program, output.name);
    }
  }
  // The total of an output over all batches; nothing when there is no output of that name.
  std::optional<double> total(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) return std::nullopt;
    const std::int64_t size = gathered_.empty() ? scalars_.size() : std::ssize(gathered_);
    double total = 0;
    for (std::int64_t i = found - names_.begin(); i < size; i += std::ssize(names_)) {
      total += gathered_.empty() ? scalars_.at(i) : gathered_[std::size_t(i)];
    }
    return total;
  }

 private:
  Scalars scalars_;
  std::vector<double> gathered_;  // of all ranks, in the order of batches; empty: there is one
  std::vector<std::string> names_;
};

std::map<std::string, Tensor> predictions_of(const Program& program) {
  std::map<std::string, Tensor> predictions;
  for (const NamedValue& output : program.graph().outputs()) {
    if (!output.name.starts_with(kPrediction)) continue;
    predictions[output.name.substr(kPrediction.size())] = program.fetch(output.name);
  }
  return predictions;
}

// Makes loss and metrics those of rank 0: what each rank measured by itself may differ by its
// processor, and patience, which goes by them, must end all ranks at the same step.
void take_of_first(Communicator& ranks, Evaluation& evaluation) {
  std::vector<double*> places{&evaluation.loss};
  for (Measured& m : evaluation.metrics) places.insert(places.end(), {&m.value, &m.sum, &m.count});
  std::vector<double> mine;
  for (const double* place : places) mine.push_back(*place);
  const std::vector<double> all = gathered(ranks, mine);
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = all[i];
}

// CBOR: numbers keep all of their bits, and texts may be of any bytes.
std::string bytes_of(const std::vector<task::FoundAnswers>& found) {
  nlohmann::json all = nlohmann::json::array();
  for (const task::FoundAnswers& of : found) {
    nlohmann::json answers = nlohmann::json::array();
    for (const task::RankedAnswer& a : of.answers) {
      answers.push_back({a.text, a.score, a.log_probability});
    }
    all.push_back({of.question, std::move(answers)});
  }
  std::string bytes;
  nlohmann::json::to_cbor(all, bytes);
  return bytes;
}
std::vector<task::FoundAnswers> found_in(std::string_view bytes) {
  std::vector<task::FoundAnswers> found;
  for (const nlohmann::json& of : nlohmann::json::from_cbor(bytes)) {
    found.push_back({of.at(0)});
    for (const nlohmann::json& a : of.at(1)) {
      found.back().answers.push_back({a.at(0), a.at(1), a.at(2)});
    }
  }
  return found;
}

// The results of a split when all batches have been run.
struct Known {
  const Sums& sums;
  double items;
  std::map<std::string, double> scores;       // of the scorer
  std::map<std::string, task::Ratio> ratios;  // of the decoder
};

double score_of(const task::MetricInfo& info, const Known& known) {
  const auto score = known.scores.find(info.name);
  check(score != known.scores.end(), ErrorKind::kUsage, "evaluation: the scorer gives no {}",
        info.name);
  return score->second;
}

task::Ratio ratio_of(const task::MetricInfo& info, const Known& known) {
  const auto found = known.ratios.find(info.name);
  if (found != known.ratios.end()) return found->second;
  const std::optional<double> sum = known.sums.total(sum_output(info.name));
  check(sum.has_value(), ErrorKind::kUsage, "evaluation: neither network nor decoder gives {}",
        info.name);
  return {*sum, known.sums.total(count_output(info.name)).value_or(known.items)};
}

Measured measured(const task::MetricInfo& info, const Known& known) {
  if (info.of == nullptr) return {.info = info, .value = score_of(info, known)};
  const task::Ratio ratio = ratio_of(info, known);
  return {info, info.of(ratio.sum, ratio.count), ratio.sum, ratio.count};
}

std::string spread_text(double share, double count) {
  const ShareError error = error_of_share(share, count);
  if (share == 0) return fmt::format(" (below {:.2f}, confidence 95 %)", error.limit);
  if (share == 1) return fmt::format(" (above {:.2f}, confidence 95 %)", 100 - error.limit);
  return fmt::format(" +- {:.2f}", error.standard);
}

}  // namespace

ShareError error_of_share(double share, double count) {
  return {100 * std::sqrt(share * (1 - share) / count), 100 * (1 - std::pow(0.05, 1 / count))};
}

double Evaluation::at(std::string_view metric) const {
  const auto found =
      std::ranges::find_if(metrics, [&](const Measured& m) { return m.info.name == metric; });
  check(found != metrics.end(), ErrorKind::kUsage, "evaluation: no metric is called '{}'", metric);
  return found->value;
}

task::StreamOptions evaluation_options(const Job& job) {
  constexpr std::int64_t kRows = 256, kTokens = 4096;
  return {.batch = job.task().batch_unit() == "tokens" ? kTokens : kRows, .shuffle = {}};
}

std::string text(const Evaluation& evaluation) {
  std::string text;
  for (const Measured& m : evaluation.metrics) {
    const std::string unit = m.info.unit.empty() ? "" : " " + m.info.unit;
    text += fmt::format("{} {:.2f}{}", m.info.name, m.value, unit);
    if (m.info.unit == "%" && m.count > 0) text += spread_text(m.value / 100, m.count);
    text += ", ";
  }
  text += fmt::format("loss {:.4f}, {} rows", evaluation.loss, evaluation.rows);
  // Items that are not rows are tokens, of which a row has several (Task::item_unit).
  const bool counts_tokens = evaluation.items > double(evaluation.rows);
  return counts_tokens ? text + fmt::format(", {:.0f} tokens", evaluation.items) : text;
}

Evaluator::Evaluator(Backend& backend, Variables& variables, const Job& job, Arena* arena)
    : backend_(backend),
      variables_(variables),
      job_(job),
      own_arena_(backend),
      arena_(arena ? *arena : own_arena_),
      carries_(backend) {}

Evaluator::Network& Evaluator::network_of(const task::Batch& batch) {
  const std::string& name = batch.network;
  if (const auto found = networks_.find(name); found != networks_.end()) return found->second;
  const auto build = [this, name](const task::Sizes& sizes) {
    return name.empty() ? build_evaluate(job_, sizes, nn::Kept::kRead)
                        : build_search(job_, name, sizes);
  };
  const task::Network& network = job_.network();
  Feeder feeder = name.empty() ? Feeder(network) : Feeder(network.search_inputs(name, batch.sizes));
  const CompileOptions options{.arena = &arena_, .carries = &carries_};
  Network made{std::move(feeder), ProgramCache(backend_, variables_, build, options)};
  return networks_.emplace(name, std::move(made)).first->second;
}

std::int64_t Evaluator::programs() const {
  std::int64_t programs = 0;
  for (const auto& [name, network] : networks_) programs += network.programs.size();
  return programs;
}

void Evaluator::declare() { variables_.declare(build_evaluate(job_, job_.network().sizes(1))); }

void Evaluator::keep() {
  if (!keep_ && may_keep_) {
    const Graph graph = build_keep(job_);
    may_keep_ = !graph.updates().empty();
    if (may_keep_) {
      keep_ =
          std::make_unique<Program>(backend_, variables_, graph, CompileOptions{.arena = &arena_});
    }
  }
  if (keep_) keep_->run();
}

Program& Evaluator::run_batch(const task::Batch& batch) {
  Network& network = network_of(batch);
  Program& program = network.programs.at(batch.sizes);
  network.feeder.feed(program, batch, {.items = 1});
  program.run();
  return program;
}

Decoded Evaluator::decode(task::Decoder& decoder, const std::function<bool()>& stops) {
  keep();
  return decode_with(decoder, stops);
}

bool Evaluator::goes_on(bool mine) const {
  if (!received_) return mine;
  const std::array<double, 2> own = {double(received_()), double(mine)};
  std::vector<double> all(own.begin(), own.end());
  if (ranks_) all = gathered(*ranks_, own);
  int signal = 0;
  bool any = false;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    signal = std::max(signal, int(all[i]));
    any = any || all[i + 1] != 0;
  }
  if (signal != 0) throw Interrupted{signal};
  return any;
}

// The clock starts when the first program is compiled. A batch of a search takes milliseconds, so
// the ranks wait for each other only at some of them.
Decoded Evaluator::decode_with(task::Decoder& decoder, const std::function<bool()>& stops) {
  using Clock = std::chrono::steady_clock;
  const task::Batch* batch = decoder.next();
  if (batch) network_of(*batch).programs.at(batch->sizes);
  carries_.clear();
  const auto start = Clock::now();
  for (std::int64_t done = 0;; ++done) {
    const bool mine = batch && !(stops && stops());
    const bool asks = !ranks_ || !mine || done % kBatchesBetweenAsking == 0;
    if (!(asks ? goes_on(mine) : mine)) break;
    if (!mine) continue;
    decoder.take(predictions_of(run_batch(*batch)));
    if (tell_) tell_(done + 1, 0);
    batch = decoder.next();
  }
  return {decoder.size(), std::chrono::duration<double>(Clock::now() - start).count()};
}

// The seconds are those of the slowest rank.
Decoded Evaluator::search(task::Decoder& decoder) {
  const bool is_shared = ranks_ && decoder.take_part(ranks_->rank(), ranks_->size());
  Decoded decoded = decode_with(decoder);
  if (!is_shared) return decoded;
  for (const std::string& bytes : gathered(*ranks_, bytes_of(decoder.found()))) {
    for (const task::FoundAnswers& found : found_in(bytes)) decoder.take_found(found);
  }
  const double own = decoded.seconds;
  for (const double seconds : gathered(*ranks_, std::span(&own, 1))) {
    decoded.seconds = std::max(decoded.seconds, seconds);
  }
  return decoded;
}

void Evaluator::share(Communicator& ranks) {
  const Graph graph = build_evaluate(job_, job_.network().sizes(1));
  // The carries from one batch to the next, and the counts of a scorer over all batches, stay in
  // one process.
  const bool stands_alone = graph.leaves(NodeKind::kCarry).empty() && !job_.network().scorer();
  ranks_ = ranks.size() > 1 ? &ranks : nullptr;
  shares_batches_ = stands_alone;
}

Evaluation Evaluator::run(task::Stream& stream, task::Decoder* decoder, task::Scorer* onlooker) {
  const std::vector<task::MetricInfo> infos = job_.task().metrics();
  const std::unique_ptr<task::Scorer> scorer = job_.network().scorer();
  const std::int64_t steps = stream.steps(0);
  Sums sums(backend_, steps * (1 + 2 * std::ssize(infos)));
  RowLedger ledger(stream.rows());
  Evaluation total{.rows = stream.rows()};
  keep();
  carries_.clear();
  const bool is_shared = ranks_ && shares_batches_ && !onlooker && steps >= ranks_->size();
  const std::int64_t first = is_shared ? ranks_->rank() : 0;
  for (std::int64_t step = first; goes_on(step < steps); step += is_shared ? ranks_->size() : 1) {
    if (step >= steps) continue;
    const task::Batch& batch = stream.at(0, step);
    ledger.take(batch.rows);
    total.items += batch.items;
    const Program& program = run_batch(batch);
    sums.send(program);
    for (task::Scorer* taker : {scorer.get(), onlooker}) {
      if (taker) taker->take(batch, predictions_of(program));
    }
    if (tell_) tell_(step + 1, steps);
  }
  if (is_shared) {
    sums.gather(*ranks_, steps);
    total.items = ledger.gather(*ranks_, total.items);
  }
  ledger.expect_all();
  total.loss = *sums.total("loss") / total.items;
  Known known{sums, total.items, {}, {}};
  if (scorer) known.scores = scorer->scores();
  if (decoder) {
    total.decoded = search(*decoder);
    known.ratios = decoder->ratios();
  }
  for (const task::MetricInfo& info : infos) total.metrics.push_back(measured(info, known));
  if (ranks_) take_of_first(*ranks_, total);
  return total;
}

}  // namespace keel::train
