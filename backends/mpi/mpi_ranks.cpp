#include "backends/mpi/mpi_ranks.h"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "backends/mpi/join_watch.h"
#include "src/core/error.h"

namespace keel::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of a message: its length is an int
constexpr std::chrono::milliseconds kBeat{1000}, kPause{50};

// Host and process, for messages about a rank.
std::string process_text() {
  char host[256] = "unknown host";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}, process {}", host, getpid());
}

using Say = std::function<void(const std::string&)>;

// Tells the next rank once a second that this process runs, and ends all ranks when the rank before
// has said nothing for too long. A rank that computes for long still says so: only a process that
// is stopped, swapped out or cut off does not.
class Heartbeat {
 public:
  Heartbeat(std::vector<std::string> processes, const Say& say)
      : processes_(std::move(processes)), say_(say) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    thread_ = std::thread(&Heartbeat::run, this);
  }
  ~Heartbeat() {
    ends_ = true;
    thread_.join();
    MPI_Comm_free(&comm_);
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  enum Tag { kAlive, kLast };

  int size() const { return int(processes_.size()); }
  int watched() const { return (rank_ + size() - 1) % size(); }

  void beat(Tag tag) {
    if (send_ != MPI_REQUEST_NULL) {
      int is_sent = 0;
      MPI_Test(&send_, &is_sent, MPI_STATUS_IGNORE);
      if (!is_sent) return;  // the one before is still on its way
    }
    MPI_Isend(&byte_, 1, MPI_BYTE, (rank_ + 1) % size(), tag, comm_, &send_);
  }

  // Whether the last beat has come.
  bool listen() {
    while (true) {
      int is_there = 0;
      MPI_Status status;
      MPI_Iprobe(watched(), MPI_ANY_TAG, comm_, &is_there, &status);
      if (!is_there) return false;
      char byte = 0;
      MPI_Recv(&byte, 1, MPI_BYTE, watched(), status.MPI_TAG, comm_, MPI_STATUS_IGNORE);
      heard_ = Clock::now();
      if (status.MPI_TAG == kLast) return true;
    }
  }

  void run() {
    heard_ = Clock::now();
    Clock::time_point next = heard_, looked = heard_;
    bool has_last = false;
    for (; !(said_last_ && has_last); std::this_thread::sleep_for(kPause)) {
      const Clock::time_point now = Clock::now();
      // If this process itself was stopped, the silence is its own.
      if (now - looked > 2 * kBeat) heard_ = now;
      looked = now;
      if (now >= next && !ends_) {
        beat(kAlive);
        next = now + kBeat;
      }
      if (ends_ && !said_last_) say_last();
      has_last = has_last || listen();
      if (!has_last && now - heard_ > std::chrono::seconds(kStallSeconds)) {
        end_all();
      }
    }
    MPI_Wait(&send_, MPI_STATUS_IGNORE);
  }

  void end_all() const {
    say_(fmt::format("keel: error: rank {} ({}) has not answered for {} s; all ranks end",
                     watched(), processes_[std::size_t(watched())], kStallSeconds));
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ErrorKind::kIo));
  }

  void say_last() {
    MPI_Wait(&send_, MPI_STATUS_IGNORE);
    MPI_Isend(&byte_, 1, MPI_BYTE, (rank_ + 1) % size(), kLast, comm_, &send_);
    said_last_ = true;
  }

  std::vector<std::string> processes_;
  Say say_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Request send_ = MPI_REQUEST_NULL;
  char byte_ = 0;
  int rank_ = 0;
  bool said_last_ = false;
  Clock::time_point heard_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

class MpiRanks final : public Communicator {
 public:
  explicit MpiRanks(const Say& say) {
    int provided = 0;
    {
      const JoinWatch watch(say);
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    }
    check(provided == MPI_THREAD_MULTIPLE, ErrorKind::kBackendMissing,
          "MPI: expected a library that several threads may call (MPI_THREAD_MULTIPLE)");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    std::vector<std::string> processes = gathered(*this, process_text());
    if (size_ > 1) heartbeat_ = std::make_unique<Heartbeat>(std::move(processes), say);
  }
  ~MpiRanks() override {
    wait_for_all();
    heartbeat_.reset();
    MPI_Finalize();
  }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string description() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string whole(text, std::size_t(length));
    return whole.substr(0, whole.find_first_of(",\n"));
  }

  void exchange(std::span<const Bytes> to, std::span<const Room> from) override {
    std::vector<MPI_Request> requests;
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) start_receive(from[std::size_t(r)], r, requests);
    }
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) start_send(to[std::size_t(r)], r, requests);
    }
    const Bytes own = to[std::size_t(rank_)];
    if (!own.empty()) std::memcpy(from[std::size_t(rank_)].data(), own.data(), own.size());
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }

  void gather(Bytes mine, std::span<const Room> from) override {
    std::vector<int> sizes, offsets;
    std::size_t total = 0;
    for (const Room room : from) {
      if (total + room.size() > kMostBytes) return exchange(std::vector(from.size(), mine), from);
      sizes.push_back(int(room.size()));
      offsets.push_back(int(total));
      total += room.size();
    }
    MPI_Allgatherv(mine.data(), int(mine.size()), MPI_BYTE, from[0].data(), sizes.data(),
                   offsets.data(), MPI_BYTE, MPI_COMM_WORLD);
  }

  void add_up(std::span<float> values) override { add_up(values, MPI_FLOAT); }
  void add_up(std::span<double> values) override { add_up(values, MPI_DOUBLE); }
  void wait_for_all() override { MPI_Barrier(MPI_COMM_WORLD); }
  void end_all(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  static int part(std::size_t left) { return int(std::min(left, kMostBytes)); }

  static void start_receive(Room room, int rank, std::vector<MPI_Request>& requests) {
    while (!room.empty()) {
      const int bytes = part(room.size());
      requests.emplace_back();
      MPI_Irecv(room.data(), bytes, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &requests.back());
      room = room.subspan(std::size_t(bytes));
    }
  }
  static void start_send(Bytes values, int rank, std::vector<MPI_Request>& requests) {
    while (!values.empty()) {
      const int bytes = part(values.size());
      requests.emplace_back();
      MPI_Isend(values.data(), bytes, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &requests.back());
      values = values.subspan(std::size_t(bytes));
    }
  }
  template <class T>
  static void add_up(std::span<T> values, MPI_Datatype type) {
    while (!values.empty()) {
      const int count = part(values.size());
      MPI_Allreduce(MPI_IN_PLACE, values.data(), count, type, MPI_SUM, MPI_COMM_WORLD);
      values = values.subspan(std::size_t(count));
    }
  }

  int rank_ = 0, size_ = 1;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace
}  // namespace keel::mpi

keel::Communicator* keel_mpi_join_ranks(const std::function<void(const std::string&)>& say) {
  return new keel::mpi::MpiRanks(say);
}
