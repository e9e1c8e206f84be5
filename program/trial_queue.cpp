#include "program/trial_queue.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

#include "frontend/io/child.h"
#include "frontend/io/folder_lock.h"
#include "frontend/io/input_file.h"
#include "frontend/io/markup.h"
#include "frontend/report/remaining.h"
#include "frontend/train/checkpoint_store.h"
#include "frontend/train/progress.h"
#include "frontend/train/run_log.h"
#include "frontend/train/signals.h"
#include "src/core/error.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, ErrorKind::kIo, "{}: cannot make this folder: {}", folder.string(),
        error.message());
}

io::Descriptor open_file(const fs::path& path, int flags) {
  constexpr mode_t kMode = 0644;
  io::Descriptor file(open(path.c_str(), flags, kMode));
  check(file.get() >= 0, ErrorKind::kIo, "{}: {}", path.string(), std::strerror(errno));
  return file;
}

fs::path log_of(const Trial& trial) { return trial.folder / "train.log"; }

// The error that ended a training, without what comes before it on its line.
std::string last_error(const Trial& trial) {
  constexpr std::string_view kBefore = "keel: error: ";
  const std::string log = io::InputFile(log_of(trial)).read_all();
  const std::size_t at = log.rfind(kBefore);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + kBefore.size();
  return io::clean_text(log.substr(begin, log.find('\n', begin) - begin));
}

bool has_checkpoint(const Trial& trial) {
  const train::RunFolder folder{trial.folder};
  const train::CheckpointStore store(folder.checkpoints(), [](const std::string&) {});
  return !store.paths().empty();
}

std::unique_ptr<io::Child> start_training(const Trial& trial) {
  static const std::string program = fs::read_symlink("/proc/self/exe");
  make_folder(trial.folder);
  const io::Descriptor nothing = open_file("/dev/null", O_RDONLY | O_CLOEXEC);
  const io::Descriptor log = open_file(log_of(trial), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC);
  std::vector<std::string> command{program};
  const std::vector<std::string>& words = has_checkpoint(trial) ? trial.resume : trial.start;
  command.insert(command.end(), words.begin(), words.end());
  return std::make_unique<io::Child>(
      command, io::ChildOptions{nothing.get(), log.get(), log.get(), /*own_group=*/true});
}

// Takes down how a training ended, by its exit code.
void judge(Trial& trial, int code) {
  constexpr int kSignalled = 128;
  if (code == 0) {
    trial.state = TrialState::kFinished;
  } else if (code == kSignalled + SIGINT || code == kSignalled + SIGTERM ||
             code == kSignalled + SIGHUP) {
    trial.state = TrialState::kInterrupted;
    trial.mark = "interrupted";
  } else {
    trial.state = TrialState::kFailed;
    trial.mark = code == int(ErrorKind::kDiverged) ? "diverged" : "failed";
    trial.reason = code < kSignalled ? last_error(trial) : "";
    if (trial.reason.empty()) trial.reason = fmt::format("exit code {}", code);
  }
}

class Queue {
 public:
  Queue(std::vector<Trial>& trials, const QueueOptions& options);
  int run();

 private:
  void start_some();
  void take_ended();
  void pass_on(int signal);
  void measure(std::size_t place);
  void show();
  std::size_t count(TrialState state) const {
    return std::size_t(std::ranges::count(trials_, state, &Trial::state));
  }

  std::vector<Trial>& trials_;
  std::size_t jobs_;
  std::vector<std::unique_ptr<io::Child>> children_;  // of the trials that run
  std::vector<report::Work> works_;                   // of all trials
  int passed_on_ = 0;                                 // the signal that they know of
  train::Progress progress_;
  Clock::time_point next_look_ = Clock::now();
};

Queue::Queue(std::vector<Trial>& trials, const QueueOptions& options)
    : trials_(trials),
      jobs_(std::size_t(options.jobs)),
      children_(trials.size()),
      works_(trials.size()),
      progress_(options.quiet) {
  for (std::size_t i = 0; i < works_.size(); ++i) measure(i);
}

int Queue::run() {
  const train::SignalGuard signals;
  progress_.line(fmt::format("{} trainings, {} of them done before", trials_.size(),
                             trials_.size() - count(TrialState::kWaiting)));
  while (true) {
    if (passed_on_ == 0) pass_on(train::SignalGuard::received());
    if (passed_on_ == 0) start_some();
    take_ended();
    const bool waits = passed_on_ == 0 && count(TrialState::kWaiting) > 0;
    if (!waits && count(TrialState::kRunning) == 0) return passed_on_;
    show();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void Queue::start_some() {
  for (std::size_t i = 0; i < trials_.size() && count(TrialState::kRunning) < jobs_; ++i) {
    Trial& trial = trials_[i];
    if (trial.state != TrialState::kWaiting) continue;
    children_[i] = start_training(trial);
    trial.state = TrialState::kRunning;
    progress_.line("started: " + trial.name);
  }
}

void Queue::take_ended() {
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    if (!children_[i]) continue;
    const std::optional<int> code = children_[i]->ended();
    if (!code) continue;
    children_[i].reset();
    Trial& trial = trials_[i];
    judge(trial, *code);
    measure(i);
    const std::string what = trial.state == TrialState::kFinished ? "finished" : trial.mark;
    const std::string why = trial.reason.empty() ? "" : ": " + trial.reason;
    progress_.line(fmt::format("{}: {}{}", what, trial.name, why));
  }
}

void Queue::pass_on(int signal) {
  if (signal == 0) return;
  passed_on_ = signal;
  for (const auto& child : children_) {
    if (child) child->signal(signal);
  }
}

// A trial that has ended has no work left.
void Queue::measure(std::size_t place) {
  const Trial& trial = trials_[place];
  report::Work& work = works_[place];
  work = report::work_of(trial.folder, trial.run, trial.length);
  const bool ended = trial.state == TrialState::kFinished || trial.state == TrialState::kFailed;
  if (ended) work.total = work.done;
}

void Queue::show() {
  if (Clock::now() < next_look_) return;
  next_look_ = Clock::now() + std::chrono::seconds(1);
  for (std::size_t i = 0; i < works_.size(); ++i) {
    if (children_[i]) measure(i);
  }
  const auto left = report::remaining_seconds(works_, int(jobs_));
  progress_.update(report::part_done(works_),
                   fmt::format("{} of {} trainings done, {} running, {} left",
                               count(TrialState::kFinished) + count(TrialState::kFailed),
                               trials_.size(), count(TrialState::kRunning),
                               left ? train::duration_text(*left) : "unknown time"));
}

}  // namespace

int run_trials(std::vector<Trial>& trials, const QueueOptions& options) {
  // Trainings inherit the lock, so that it is held for as long as any of them is there, even if
  // this process should be killed.
  const io::FolderLock lock(options.folder, options.command, io::FolderLock::Holder::kDescendants);
  return Queue(trials, options).run();
}

}  // namespace keel::cli
