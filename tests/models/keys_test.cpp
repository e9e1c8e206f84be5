// Every key of every task changes something: the network, its training step, the data, or what a
// run of two updates measures. A key that nothing reads changes none of them.
#include <algorithm>
#include <sstream>

#include "frontend/train/step_graph.h"
#include "tests/models/every_task.h"
#include "tests/support/graph_text.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

using test::operator+;

// Settings under which a key acts, where it does nothing in the small run of its task.
struct Context {
  std::string key;  // "translation model.merges", or "model.norm" for all tasks
  Settings settings;
};
const std::vector<Context> kContexts{};

// Values of keys that are neither numbers nor choices.
struct KnownValue {
  std::string key, value;
};
const std::vector<KnownValue> kValues{};

std::string batch_text(const task::Batch& batch) {
  std::string text = fmt::format("{} {} {}", batch.items, batch.first_row, batch.rows.size());
  for (const std::int64_t size : batch.sizes) text += fmt::format(" {}", size);
  for (const Tensor& value : batch.values) {
    text.append(reinterpret_cast<const char*>(value.data()), std::size_t(value.bytes()));
  }
  return text;
}

std::string stream_text(task::Stream& stream) {
  std::string text = fmt::format("{} rows, {} steps", stream.rows(), stream.steps(0));
  for (std::int64_t step = 0; step < std::min<std::int64_t>(3, stream.steps(0)); ++step) {
    text += batch_text(stream.at(0, step));
  }
  return text;
}

// What a job computes, without computing it.
std::string job_text(const train::Job& job) {
  std::string text;
  for (const auto& [name, asset] : job.network().assets()) text += name + "=" + asset + "\n";
  const auto stream = stream_of(job, task::Split::kTrain, training(job, 1));
  const task::Sizes sizes = stream->at(0, 0).sizes;
  text += test::graph_text(train::build_step(job, sizes));
  text += test::graph_text(train::build_evaluate(job, sizes));
  text += stream_text(*stream);
  for (const task::Split split : {task::Split::kValid, task::Split::kTest}) {
    text += stream_text(*stream_of(job, split, {.batch = 16}));
  }
  return text;
}

// The metrics of a run of two updates.
std::string run_text(const Settings& settings, const std::string& task) {
  const test::TempDir folder;
  const train::Summary summary =
      test::train_in(folder / "run", small_job(settings + Settings{"train.max_steps=2"}, task));
  std::string text;
  for (const auto& m : summary.test.metrics) text += fmt::format("{}={} ", m.info.name, m.value);
  return text;
}

// Other values that a key might take, the likeliest first.
std::vector<std::string> candidates(const std::string& task, const OptionFact& fact) {
  std::vector<std::string> values;
  for (const KnownValue& known : kValues) {
    if (known.key == fact.name || known.key == task + " " + fact.name) {
      values.push_back(known.value);
    }
  }
  std::string words = fact.range;
  for (const char* separator : {", or ", " or ", ", "}) {
    for (std::size_t at; (at = words.find(separator)) != words.npos;) {
      words.replace(at, std::string(separator).size(), "\n");
    }
  }
  std::istringstream lines(words);
  for (std::string word; std::getline(lines, word);) {
    if (word.find(' ') == word.npos) values.push_back(word);
  }
  double number = 0;
  try {
    attr_parse(fact.value, number);
    for (const double other : {number + 1, number - 1, 2 * number, number / 2, 0.5, 0.25, 2.0}) {
      values.push_back(attr_text(other));
    }
  } catch (const Error&) {
    values.insert(values.end(), {"rmsnorm", "batchnorm", "layerscaling", "layernorm"});
  }
  std::erase(values, fact.value);
  return values;
}

bool acts(const std::string& task, const OptionFact& fact, const Settings& context, bool by_run) {
  const auto text_of = [&](const Settings& settings) {
    return by_run ? run_text(settings, task) : job_text(small_job(settings, task));
  };
  const std::string usual = text_of(context);
  for (const std::string& value : candidates(task, fact)) {
    try {
      if (text_of(context + Settings{fact.name + "=" + value}) != usual) return true;
    } catch (const Error&) {  // the key does not take this value
    }
  }
  return false;
}

TEST_CASE("keys: every key of every task changes the network, the data or what is measured") {
  for (const ModelEntry& entry : all_models()) {
    const std::string task = entry.name;
    CAPTURE(task);
    for (const OptionFact& fact : test::small_config({}, task).facts()) {
      if (!fact.name.starts_with("model.")) continue;
      CAPTURE(fact.name);
      bool found = acts(task, fact, {}, false);
      for (const Context& context : kContexts) {
        if (context.key != fact.name && context.key != task + " " + fact.name) continue;
        found = found || acts(task, fact, context.settings, false) ||
                acts(task, fact, context.settings, true);
      }
      CHECK(found);
    }
  }
}

}  // namespace
}  // namespace keel::models
