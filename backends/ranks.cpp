#include "backends/ranks.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backends/backend_config.h"
#include "backends/nccl/nccl_ranks.h"
#include "src/core/error.h"
#ifdef KEEL_MPI
#include "backends/mpi/mpi_ranks.h"
#endif

namespace keel {
namespace {

// The number of processes, as their launcher tells it; null: no launcher has started this one.
const char* launched_count() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* count = std::getenv(name)) return count;
  }
  // PMIx tells the number only over a socket; Slurm also by a variable.
  return std::getenv("PMIX_RANK") ? std::getenv("SLURM_NTASKS") : nullptr;
}

#ifdef KEEL_MPI
// Loads keel's library for MPI. Open MPI's own parts, which it loads in turn, look for its symbols
// among those of the whole process.
std::unique_ptr<Communicator> join_by_mpi(const char* count, const Say& say) {
  void* library = dlopen("libkeel_mpi.so", RTLD_NOW | RTLD_GLOBAL);
  void* join = library ? dlsym(library, "keel_mpi_join_ranks") : nullptr;
  check(join != nullptr, ErrorKind::kBackendMissing,
        "this is one of {} processes that were started together, and keel's library for MPI "
        "cannot be loaded: {}",
        count, library ? "it lacks keel_mpi_join_ranks" : dlerror());
  return std::unique_ptr<Communicator>(reinterpret_cast<decltype(&keel_mpi_join_ranks)>(join)(say));
}
#endif

}  // namespace

bool has_mpi() {
#ifdef KEEL_MPI
  return true;
#else
  return false;
#endif
}

int local_rank() {
  if (launched_count() == nullptr) return 0;
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    if (const char* number = std::getenv(name)) return std::max(0, std::atoi(number));
  }
  return 0;
}

std::unique_ptr<Communicator> carried_by_nccl(Communicator& ranks, int device) {
  nccl::NcclOptions options{.device = device};
  if (const char* library = std::getenv("KEEL_NCCL")) options.library = library;
  return nccl::join_by_nccl(ranks, options);
}

std::unique_ptr<Communicator> start_ranks(const Say& say) {
  const char* count = launched_count();
  if (count == nullptr || std::string_view(count) == "1") return std::make_unique<OneRank>();
#ifdef KEEL_MPI
  auto ranks = join_by_mpi(count, say);
  check(std::to_string(ranks->size()) == count, ErrorKind::kBackendMissing,
        "this is one of {} processes that were started together, but {} finds {}: a launcher of "
        "another MPI has started them",
        count, ranks->description(), ranks->size());
  return ranks;
#else
  static_cast<void>(say);
  fail(ErrorKind::kBackendMissing,
       "this is one of {} processes that were started together, and this keel was built without "
       "MPI; install Open MPI (libopenmpi-dev) and configure with -Dmpi=enabled",
       count);
#endif
}

}  // namespace keel
