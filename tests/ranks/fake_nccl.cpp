// NCCL and CUDA's runtime for tests of backends/nccl: a library of their names, for ranks that are
// threads of one process.
//
// It is stricter than the real ones where these would wait for ever or go wrong at times: memory of
// the "GPU" is only what cudaMalloc gave, a stream takes copies only while its device is the
// thread's current one, nothing happens before cudaStreamSynchronize, messages have to be of the
// size that the other side expects, ncclSend has to stand in a group, and what a group sends and
// receives must not overlap. It adds up from the last rank to the first: in another order than the
// tree of shards.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace {

constexpr int kSuccess = 0, kWrong = 5;  // ncclInvalidUsage; CUDA's has another name

using Message = std::vector<std::byte>;

// The messages between the ranks that share an id.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<Message>> messages;  // by sender and taker
  int joined = 0;

  void put(int from, int to, Message message) {
    const std::lock_guard lock(mutex);
    messages[{from, to}].push_back(std::move(message));
    changed.notify_all();
  }
  // Nothing when the other rank gives none for so long that it never will.
  std::optional<Message> take(int from, int to) {
    constexpr std::chrono::seconds kLongest{60};
    std::unique_lock lock(mutex);
    std::deque<Message>& queue = messages[{from, to}];
    if (!changed.wait_for(lock, kLongest, [&] { return !queue.empty(); })) return std::nullopt;
    Message message = std::move(queue.front());
    queue.pop_front();
    return message;
  }
};

struct Id {
  char bytes[128];
};

struct FakeComm {
  World* world = nullptr;
  int ranks = 0, rank = 0;
};

thread_local int current_device = 0;

struct FakeStream {
  std::vector<std::function<bool()>> work;  // each says whether it went well
  int device = current_device;
};

std::mutex mutex;  // of what follows
std::map<int, World> worlds;
std::map<const std::byte*, std::size_t> rooms;  // of the GPU
int next_id = 1;
int calls_of[4];  // sends, receipts, gathers, sums
int async_error = kSuccess;

thread_local int group_depth = 0;

// A range that an operation of the current group reads or writes: in a group they run at the same
// time.
struct Range {
  const std::byte* begin;
  const std::byte* end;
  bool is_written;
};
thread_local std::vector<Range> group_ranges;

// Whether nothing else of the group writes there, or reads what is written.
bool joins_group(const void* memory, std::size_t bytes, bool is_written) {
  const auto* begin = static_cast<const std::byte*>(memory);
  const Range own{begin, begin + bytes, is_written};
  const bool is_free = std::ranges::none_of(group_ranges, [&](const Range& other) {
    return (own.is_written || other.is_written) && own.begin < other.end && other.begin < own.end;
  });
  group_ranges.push_back(own);
  return group_depth > 0 && is_free;
}

bool is_on_device(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto* begin = static_cast<const std::byte*>(memory);
  const auto after = rooms.upper_bound(begin);
  if (after == rooms.begin()) return false;
  const auto& [room, size] = *std::prev(after);
  return begin + bytes <= room + size;
}

void count(int call) {
  const std::lock_guard lock(mutex);
  ++calls_of[call];
}

std::size_t size_of(int type) { return type == 8 ? 8 : type == 7 ? 4 : 1; }

Message copy_of(const void* from, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  return {begin, begin + bytes};
}

bool receive(const FakeComm& comm, int peer, void* to, std::size_t bytes) {
  const std::optional<Message> message = comm.world->take(peer, comm.rank);
  if (!message || message->size() != bytes) return false;
  std::memcpy(to, message->data(), bytes);
  return true;
}

template <class T>
bool add_in_reverse(const FakeComm& comm, void* to, std::size_t count) {
  std::vector<T> sum(count);
  for (int r = comm.ranks - 1; r >= 0; --r) {
    const std::optional<Message> message = comm.world->take(r, comm.rank);
    if (!message || message->size() != count * sizeof(T)) return false;
    const T* values = reinterpret_cast<const T*>(message->data());
    for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  std::memcpy(to, sum.data(), count * sizeof(T));
  return true;
}

}  // namespace

extern "C" {

// How often each function was called by all ranks, for tests: sends, receipts, gathers, sums.
const int* fake_nccl_calls() { return calls_of; }

// Sets the error that all communicators report from now on; 0 is none.
void fake_nccl_fail(int error) {
  const std::lock_guard lock(mutex);
  async_error = error;
}

int cudaSetDevice(int number) {
  current_device = number;
  return kSuccess;
}

int cudaMalloc(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  const std::lock_guard lock(mutex);
  rooms[static_cast<std::byte*>(*memory)] = bytes;
  return kSuccess;
}

int cudaFree(void* memory) {
  const std::lock_guard lock(mutex);
  if (memory != nullptr && rooms.erase(static_cast<std::byte*>(memory)) == 0) return kWrong;
  std::free(memory);
  return kSuccess;
}

int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream) {
  const bool to_device = kind == 1;
  auto& taken = *static_cast<FakeStream*>(stream);
  if (!is_on_device(to_device ? to : from, bytes) || taken.device != current_device) return kWrong;
  taken.work.push_back([=] {
    std::memcpy(to, from, bytes);
    return true;
  });
  return kSuccess;
}

int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  *stream = new FakeStream;
  return flags == 1 ? kSuccess : kWrong;
}

int cudaStreamDestroy(void* stream) {
  delete static_cast<FakeStream*>(stream);
  return kSuccess;
}

int cudaStreamSynchronize(void* stream) {
  auto& work = static_cast<FakeStream*>(stream)->work;
  const bool all_well = std::ranges::all_of(work, [](const auto& part) { return part(); });
  work.clear();
  return all_well ? kSuccess : kWrong;
}

const char* cudaGetErrorString(int) { return "fake CUDA: wrong use"; }

int ncclGetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}

int ncclGetUniqueId(Id* id) {
  const std::lock_guard lock(mutex);
  std::memcpy(id->bytes, &next_id, sizeof next_id);
  ++next_id;
  return kSuccess;
}

int ncclCommInitRank(void** comm, int ranks, Id id, int rank) {
  int number = 0;
  std::memcpy(&number, id.bytes, sizeof number);
  if (number == 0 || rank < 0 || rank >= ranks) return kWrong;
  World* world = nullptr;
  {
    const std::lock_guard lock(mutex);
    world = &worlds[number];
  }
  std::unique_lock lock(world->mutex);
  ++world->joined;
  world->changed.notify_all();
  world->changed.wait(lock, [&] { return world->joined >= ranks; });
  *comm = new FakeComm{world, ranks, rank};
  return kSuccess;
}

int ncclCommDestroy(void* comm) {
  delete static_cast<FakeComm*>(comm);
  return kSuccess;
}

int ncclCommGetAsyncError(void*, int* error) {
  const std::lock_guard lock(mutex);
  *error = async_error;
  return kSuccess;
}

int ncclGroupStart() {
  ++group_depth;
  return kSuccess;
}

int ncclGroupEnd() {
  group_ranges.clear();
  return --group_depth < 0 ? kWrong : kSuccess;
}

int ncclSend(const void* from, std::size_t bytes, int type, int peer, void* comm, void* stream) {
  if (type != 0 || !joins_group(from, bytes, false) || !is_on_device(from, bytes)) return kWrong;
  count(0);
  const FakeComm own = *static_cast<FakeComm*>(comm);
  static_cast<FakeStream*>(stream)->work.push_back([=] {
    own.world->put(own.rank, peer, copy_of(from, bytes));
    return true;
  });
  return kSuccess;
}

int ncclRecv(void* to, std::size_t bytes, int type, int peer, void* comm, void* stream) {
  if (type != 0 || !joins_group(to, bytes, true) || !is_on_device(to, bytes)) return kWrong;
  count(1);
  const FakeComm own = *static_cast<FakeComm*>(comm);
  static_cast<FakeStream*>(stream)->work.push_back([=] { return receive(own, peer, to, bytes); });
  return kSuccess;
}

int ncclAllGather(const void* from, void* to, std::size_t elements, int type, void* comm,
                  void* stream) {
  const FakeComm own = *static_cast<FakeComm*>(comm);
  const std::size_t bytes = elements * size_of(type);
  if (!is_on_device(from, bytes) || !is_on_device(to, bytes * std::size_t(own.ranks))) {
    return kWrong;
  }
  count(2);
  static_cast<FakeStream*>(stream)->work.push_back([=] {
    for (int r = 0; r < own.ranks; ++r) own.world->put(own.rank, r, copy_of(from, bytes));
    bool all_well = true;
    for (int r = 0; r < own.ranks; ++r) {
      all_well &= receive(own, r, static_cast<std::byte*>(to) + std::size_t(r) * bytes, bytes);
    }
    return all_well;
  });
  return kSuccess;
}

int ncclAllReduce(const void* from, void* to, std::size_t elements, int type, int op, void* comm,
                  void* stream) {
  const FakeComm own = *static_cast<FakeComm*>(comm);
  const std::size_t bytes = elements * size_of(type);
  if (op != 0 || !is_on_device(from, bytes) || !is_on_device(to, bytes)) return kWrong;
  count(3);
  static_cast<FakeStream*>(stream)->work.push_back([=] {
    for (int r = 0; r < own.ranks; ++r) own.world->put(own.rank, r, copy_of(from, bytes));
    return type == 8 ? add_in_reverse<double>(own, to, elements)
                     : add_in_reverse<float>(own, to, elements);
  });
  return kSuccess;
}

const char* ncclGetErrorString(int) { return "fake NCCL: wrong use"; }

}  // extern "C"
