// The run loop allocates nothing: every allocation of the process is seen, and charged to the
// library whose code asked for it.
#include <doctest/doctest.h>

#include <cstdlib>  // defines __GLIBC__

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KEEL_COUNTS_ALLOCATIONS
#endif

#ifdef KEEL_COUNTS_ALLOCATIONS
#include <dlfcn.h>
#include <execinfo.h>

#include <atomic>
#include <cerrno>
#include <string_view>

#include "backends/backends.h"
#include "frontend/train/feeder.h"
#include "frontend/train/step_graph.h"
#include "src/runtime/scalars.h"
#include "tests/support/small_run.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> own = 0, foreign = 0;
thread_local bool inside = false;

enum class Owner { kRuntime, kExternal, kOurs };

// Whose code lies at an address. The C and C++ runtimes allocate on behalf of their caller.
Owner owner_of(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return Owner::kOurs;
  const std::string_view path = info.dli_fname;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (std::string_view runtime : {"libc.so", "libc-", "libstdc++", "libgcc_s", "libm.so", "ld-"}) {
    if (file.starts_with(runtime)) return Owner::kRuntime;
  }
  for (std::string_view library : {"libdnnl", "libtbb"}) {
    if (file.starts_with(library)) return Owner::kExternal;
  }
  return Owner::kOurs;
}

// Charges an allocation to the nearest caller outside of the runtimes. `hook` is where the
// replaced function returns to.
void charge(const void* hook_caller) {
  if (!counting || inside) return;
  inside = true;
  void* frames[32];
  const int depth = backtrace(frames, 32);
  int frame = 0;
  while (frame < depth && frames[frame] != hook_caller) ++frame;
  Owner owner = Owner::kRuntime;
  for (; frame < depth && owner == Owner::kRuntime; ++frame) owner = owner_of(frames[frame]);
  ++(owner == Owner::kExternal ? foreign : own);
  inside = false;
}

}  // namespace

// The C library's own functions under the names that a replacement may call.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  charge(__builtin_return_address(0));
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  charge(__builtin_return_address(0));
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  charge(__builtin_return_address(0));
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  charge(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  charge(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  charge(__builtin_return_address(0));
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}

namespace keel::train {
namespace {

struct Counts {
  int own, foreign;
};

template <class Action>
Counts allocations_of(Action action) {
  own = foreign = 0;
  counting = true;
  action();
  counting = false;
  return {own, foreign};
}

void* volatile escaped;  // keeps an allocation from being optimised away

TEST_CASE("run loop: the counter sees allocations of every kind") {
  escaped = std::malloc(1);  // backtrace() loads a library on its first use
  CHECK(allocations_of([] {}).own == 0);
  CHECK(allocations_of([] { escaped = std::malloc(8); }).own == 1);
  CHECK(allocations_of([] { escaped = std::calloc(2, 8); }).own == 1);
  CHECK(allocations_of([] { escaped = std::aligned_alloc(64, 64); }).own == 1);
  CHECK(allocations_of([] { escaped = new double(1); }).own == 1);
  CHECK(allocations_of([] { escaped = new Tensor(DType::kF32, {3}); }).own >= 2);
  CHECK(allocations_of([] {
          std::string text(100, 'x');
          text += text;
          escaped = text.data();
        }).own == 2);
}

TEST_CASE("run loop: twenty training steps allocate nothing") {
  std::vector<std::string> backends{"null"};
  if (default_backend() == "onednn") backends.push_back("onednn");
  for (const std::string& name : backends) {
    for (const char* norm : {"layernorm", "batchnorm"}) {
      CAPTURE(name);
      CAPTURE(std::string(norm));
      const Job job = test::small_job({std::string("model.norm=") + norm});
      const task::Splits& data = job.splits();
      const auto rows = data.stream(task::Split::kTrain, {.batch = 32, .shuffle = 1});
      const auto backend = make_backend(name);
      Variables variables(*backend, 1);
      Program step(*backend, variables, build_step(job), {.guard = "grad_norm"});
      const Feeder feeder(job.network());
      const Tensor lr = Tensor::scalar(1e-3f), weight = Tensor::scalar(1.0f / 32);
      Scalars scalars(*backend, 1);
      double loss = 0;
      const auto run = [&](int steps) {
        for (int i = 0; i < steps; ++i) {
          step.feed("lr", lr);
          step.feed("weight", weight);
          feeder.feed(step, rows->at(std::uint32_t(i / 8), i % 8));
          step.run();
          scalars.clear();
          scalars.send(step, "loss");
          loss = scalars.at(0);
        }
      };
      run(10);  // the libraries' threads and caches come to life, and room for two epochs
      const Counts counts = allocations_of([&] { run(20); });
      CHECK(counts.own == 0);
      if (counts.foreign > 0) MESSAGE("allocations inside of libraries: " << counts.foreign);
      CHECK((name == "null" || loss > 0));
    }
  }
}

}  // namespace
}  // namespace keel::train

#else

TEST_CASE("run loop: twenty training steps allocate nothing") {
  MESSAGE("skipped: a sanitizer owns the allocator, or it is not that of glibc");
}

#endif
