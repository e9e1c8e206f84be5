#include "backends/nccl/nccl_ranks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "src/core/error.h"

namespace keel::nccl {
namespace {

// Memory of the GPU that grows and stays.
class DeviceRoom {
 public:
  explicit DeviceRoom(const Library& library) : library_(library) {}
  ~DeviceRoom() { library_.cuda().free(memory_); }
  DeviceRoom(const DeviceRoom&) = delete;
  DeviceRoom& operator=(const DeviceRoom&) = delete;

  std::byte* of(std::size_t bytes) {
    if (bytes > bytes_) {
      library_.expect_cuda(library_.cuda().free(std::exchange(memory_, nullptr)), "cudaFree");
      bytes_ = 0;
      library_.expect_cuda(library_.cuda().malloc(&memory_, bytes), "cudaMalloc");
      bytes_ = bytes;
    }
    return static_cast<std::byte*>(memory_);
  }

 private:
  const Library& library_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

class NcclRanks final : public Communicator {
 public:
  NcclRanks(Communicator& host, const NcclOptions& options)
      : host_(host),
        library_(options.library),
        least_bytes_(options.least_bytes),
        device_(options.device) {
    const CudaFunctions& cuda = library_.cuda();
    use_device();
    library_.expect_cuda(cuda.stream_create(&stream_, kNonBlocking), "cudaStreamCreateWithFlags");
    library_.expect_nccl(
        library_.nccl().comm_init_rank(&comm_, host.size(), common_id(), host.rank()),
        "ncclCommInitRank");
  }
  ~NcclRanks() override {
    library_.nccl().comm_destroy(comm_);
    library_.cuda().stream_destroy(stream_);
  }
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  std::string description() const override {
    return fmt::format("{} beside {}", library_.version(), host_.description());
  }

  void exchange(std::span<const Bytes> to, std::span<const Room> from) override {
    std::vector<Bytes> small_to(to.size());
    std::vector<Room> small_from(from.size());
    std::vector<std::size_t> large_to, large_from;  // ranks
    for (std::size_t r = 0; r < to.size(); ++r) {
      is_large(r, to[r].size()) ? large_to.push_back(r) : void(small_to[r] = to[r]);
      is_large(r, from[r].size()) ? large_from.push_back(r) : void(small_from[r] = from[r]);
    }
    host_.exchange(small_to, small_from);
    if (!large_to.empty() || !large_from.empty()) {
      carry({to, large_to}, {from, large_from});
    }
  }

  // NCCL gathers as many bytes of each rank, so the shorter ones are padded.
  void gather(Bytes mine, std::span<const Room> from) override {
    std::size_t most = 0;
    for (const Room room : from) most = std::max(most, room.size());
    if (size() == 1 || most < least_bytes_) return host_.gather(mine, from);
    use_device();
    std::byte* own = room_.of(most * (from.size() + 1));
    std::byte* all = own + most;
    to_device(own, mine);
    library_.expect_nccl(library_.nccl().all_gather(own, all, most, kBytes, comm_, stream_),
                         "ncclAllGather");
    for (std::size_t r = 0; r < from.size(); ++r) to_host(from[r], all + r * most);
    wait();
  }

  void add_up(std::span<float> values) override { add_up(values, kFloat); }
  void add_up(std::span<double> values) override { add_up(values, kDouble); }
  void wait_for_all() override { host_.wait_for_all(); }
  [[noreturn]] void end_all(int code) override {
    host_.end_all(code);
    std::_Exit(code);
  }

 private:
  template <class Span>
  struct Messages {
    std::span<const Span> of;  // by rank
    const std::vector<std::size_t>& ranks;

    std::size_t bytes() const {
      std::size_t sum = 0;
      for (const std::size_t r : ranks) sum += of[r].size();
      return sum;
    }
  };

  // CUDA keeps a current device for each thread, which others may have changed.
  void use_device() const {
    library_.expect_cuda(library_.cuda().set_device(device_), "cudaSetDevice");
  }

  UniqueId common_id() {
    UniqueId mine{};
    if (rank() == 0) library_.expect_nccl(library_.nccl().get_unique_id(&mine), "ncclGetUniqueId");
    const std::string_view bytes(mine.bytes, sizeof mine.bytes);
    const std::string of_first = gathered(host_, bytes).front();
    std::memcpy(mine.bytes, of_first.data(), sizeof mine.bytes);
    return mine;
  }

  // Both sides know the size of a message, so they agree on who carries it.
  bool is_large(std::size_t rank, std::size_t bytes) const {
    return int(rank) != host_.rank() && bytes > 0 && bytes >= least_bytes_;
  }

  // All sends and receipts are one group: NCCL would else wait for the first before the second.
  void carry(const Messages<Bytes>& to, const Messages<Room>& from) {
    use_device();
    std::byte* sent = room_.of(to.bytes() + from.bytes());
    std::byte* received = sent + to.bytes();
    std::byte* place = sent;
    for (const std::size_t r : to.ranks) place = to_device(place, to.of[r]);
    const NcclFunctions& nccl = library_.nccl();
    library_.expect_nccl(nccl.group_start(), "ncclGroupStart");
    place = sent;
    for (const std::size_t r : to.ranks) {
      library_.expect_nccl(nccl.send(place, to.of[r].size(), kBytes, int(r), comm_, stream_),
                           "ncclSend");
      place += to.of[r].size();
    }
    place = received;
    for (const std::size_t r : from.ranks) {
      library_.expect_nccl(nccl.recv(place, from.of[r].size(), kBytes, int(r), comm_, stream_),
                           "ncclRecv");
      place += from.of[r].size();
    }
    library_.expect_nccl(nccl.group_end(), "ncclGroupEnd");
    place = received;
    for (const std::size_t r : from.ranks) {
      to_host(from.of[r], place);
      place += from.of[r].size();
    }
    wait();
  }

  template <class T>
  void add_up(std::span<T> values, int type) {
    if (size() == 1 || values.size_bytes() < least_bytes_) return host_.add_up(values);
    use_device();
    std::byte* own = room_.of(values.size_bytes());
    to_device(own, std::as_bytes(values));
    library_.expect_nccl(
        library_.nccl().all_reduce(own, own, values.size(), type, kSum, comm_, stream_),
        "ncclAllReduce");
    to_host(std::as_writable_bytes(values), own);
    wait();
  }

  // Returns the end of the copy.
  std::byte* to_device(std::byte* to, Bytes from) {
    library_.expect_cuda(
        library_.cuda().memcpy_async(to, from.data(), from.size(), kToDevice, stream_),
        "cudaMemcpyAsync");
    return to + from.size();
  }
  void to_host(Room to, const std::byte* from) {
    library_.expect_cuda(library_.cuda().memcpy_async(to.data(), from, to.size(), kToHost, stream_),
                         "cudaMemcpyAsync");
  }
  // Until the host has what it asked for. A rank that died meanwhile is the host's matter.
  void wait() {
    library_.expect_cuda(library_.cuda().stream_synchronize(stream_), "cudaStreamSynchronize");
    int error = kSuccess;
    library_.expect_nccl(library_.nccl().comm_get_async_error(comm_, &error),
                         "ncclCommGetAsyncError");
    library_.expect_nccl(error, "NCCL");
  }

  Communicator& host_;
  Library library_;
  std::size_t least_bytes_;
  int device_;
  Stream* stream_ = nullptr;
  Comm* comm_ = nullptr;
  DeviceRoom room_{library_};
};

}  // namespace

std::unique_ptr<Communicator> join_by_nccl(Communicator& host, const NcclOptions& options) {
  return std::make_unique<NcclRanks>(host, options);
}

}  // namespace keel::nccl
