// Ranks by NCCL, checked against the promises of a Communicator, over the fake library of
// tests/ranks. The real one takes a GPU for each rank, and so has one rank here, where there is a
// GPU.
#include "backends/nccl/nccl_ranks.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <array>
#include <filesystem>

#include "backends/backends.h"
#include "frontend/train/trainer.h"
#include "src/core/rng.h"
#include "src/runtime/rank_sum.h"
#include "tests/support/same_run.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thread_ranks.h"

namespace keel {
namespace {

// It lies beside the test program.
nccl::NcclOptions fake_options(std::size_t least_bytes) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto library = program.parent_path() / "libfake_nccl.so";
  REQUIRE_MESSAGE(std::filesystem::exists(library), "expected " << library.string());
  return {.library = library, .least_bytes = least_bytes};
}

// Sends, receipts, gathers and sums of the fake library so far.
std::array<int, 4> nccl_calls() {
  void* library = dlopen(fake_options(1).library.c_str(), RTLD_NOW);
  const auto calls = reinterpret_cast<const int* (*)()>(dlsym(library, "fake_nccl_calls"));
  std::array<int, 4> counts{};
  std::copy_n(calls(), 4, counts.begin());
  return counts;
}

void run_nccl(int ranks, const std::function<void(Communicator&)>& body,
              std::size_t least_bytes = 1) {
  test::run_ranks(ranks, [&](Communicator& host) {
    const auto joined = nccl::join_by_nccl(host, fake_options(least_bytes));
    body(*joined);
  });
}

void expect(bool holds, const char* what) { check(holds, ErrorKind::kCheckFailed, "{}", what); }

TEST_CASE("nccl: the real library carries what one rank gathers and adds up, where a GPU is") {
  test::run_ranks(1, [](Communicator& host) {
    std::unique_ptr<Communicator> all;
    try {
      all = nccl::join_by_nccl(host, {.least_bytes = 1});
    } catch (const Error& error) {
      MESSAGE("skipped: " << std::string(error.what()));
      return;
    }
    std::vector<float> values{1, 2.5f, -3};
    all->add_up(values);
    expect(values == std::vector<float>{1, 2.5f, -3}, "sums");
    expect(gathered(*all, "alone") == std::vector<std::string>{"alone"}, "texts");
    expect(all->description().starts_with("NCCL 2."), "description");
  });
}

TEST_CASE("nccl: it says who it is, and of whom") {
  run_nccl(2, [](Communicator& all) {
    expect(all.size() == 2, "two ranks");
    expect(all.description() == "NCCL 2.28.9 beside threads", "description");
  });
}

// The fake one has as many GPUs as are asked for, and takes copies only on the one of the stream.
TEST_CASE("nccl: a rank carries by its own GPU, whatever the thread used meanwhile") {
  void* library = dlopen(fake_options(1).library.c_str(), RTLD_NOW);
  const auto use = reinterpret_cast<int (*)(int)>(dlsym(library, "cudaSetDevice"));
  test::run_ranks(2, [&](Communicator& host) {
    nccl::NcclOptions options = fake_options(1);
    options.device = 3 + host.rank();
    const auto all = nccl::join_by_nccl(host, options);
    const std::vector<std::string> expected{"first", "second"};
    for (int other : {0, 9}) {
      use(other);
      expect(gathered(*all, expected[std::size_t(host.rank())]) == expected, "texts");
      use(other);
      std::vector<float> values{1, 2};
      all->add_up(std::span(values));
      expect(values == std::vector<float>{2, 4}, "sums");
    }
  });
}

// Rank r gives rank q r + 2 q bytes, of the value 16 r + q; none where that is 0.
TEST_CASE("nccl: an exchange brings what every other rank gave, of any size") {
  const auto before = nccl_calls();
  run_nccl(3, [](Communicator& all) {
    const int own = all.rank();
    std::vector<std::vector<std::byte>> given, taken;
    for (int r = 0; r < 3; ++r) {
      given.emplace_back(std::size_t(own + 2 * r), std::byte(16 * own + r));
      taken.emplace_back(std::size_t(r + 2 * own));
    }
    for (int round = 0; round < 2; ++round) {
      all.exchange(std::vector<Communicator::Bytes>(given.begin(), given.end()),
                   std::vector<Communicator::Room>(taken.begin(), taken.end()));
    }
    for (int r = 0; r < 3; ++r) {
      const std::vector<std::byte> expected(std::size_t(r + 2 * own), std::byte(16 * r + own));
      expect(taken[std::size_t(r)] == expected, "bytes of another rank");
    }
  });
  const auto after = nccl_calls();
  CHECK(after[0] - before[0] == 2 * 6);  // what a rank gives itself needs no NCCL
  CHECK(after[1] - before[1] == 2 * 6);
}

TEST_CASE("nccl: a gathering has the ranks in order, whatever each gives") {
  const auto before = nccl_calls();
  run_nccl(4, [](Communicator& all) {
    const std::string mine(std::size_t(3 - all.rank()), char('a' + all.rank()));
    expect(gathered(all, mine) == std::vector<std::string>{"aaa", "bb", "c", ""}, "texts");
  });
  CHECK(nccl_calls()[2] - before[2] == 4 * 2);  // lengths, then texts
}

TEST_CASE("nccl: small values go by the host, in both directions") {
  const auto before = nccl_calls();
  run_nccl(
      2,
      [](Communicator& all) {
        std::vector<float> few(15, 1), many(16, 1);
        all.add_up(few);
        all.add_up(many);
        expect(few.front() == 2 && many.back() == 2, "sums");
        // 10 bytes go from rank 0 to rank 1, and 70 come back.
        const std::size_t given = all.rank() == 0 ? 10 : 70, taken = 80 - given;
        std::vector<std::byte> out(given, std::byte(all.rank())), in(taken), nothing;
        std::vector<Communicator::Bytes> to{nothing, nothing};
        std::vector<Communicator::Room> from{nothing, nothing};
        const auto other = std::size_t(1 - all.rank());
        to[other] = out;
        from[other] = in;
        all.exchange(to, from);
        expect(in == std::vector(taken, std::byte(1 - all.rank())), "bytes");
      },
      64);
  const auto after = nccl_calls();
  CHECK(after[3] - before[3] == 2);  // one sum, of two ranks
  CHECK(after[0] - before[0] == 1);
  CHECK(after[1] - before[1] == 1);
}

TEST_CASE("nccl: what went wrong in the background is an error, and not a sum") {
  void* library = dlopen(fake_options(1).library.c_str(), RTLD_NOW);
  const auto fail = reinterpret_cast<void (*)(int)>(dlsym(library, "fake_nccl_fail"));
  std::string said;
  run_nccl(2, [&](Communicator& all) {
    fail(3);
    all.wait_for_all();
    std::vector<float> values{1, 2};
    try {
      all.add_up(values);
    } catch (const Error& error) {
      if (all.rank() == 0) said = error.what();
    }
    all.wait_for_all();
  });
  fail(0);
  CHECK(said.find("NCCL") != std::string::npos);
  CHECK(said.find("fake NCCL: wrong use") != std::string::npos);
}

std::vector<float> nccl_term(std::int64_t shard) {
  std::vector<float> term;
  const Philox random(7, std::uint64_t(shard));
  for (std::uint64_t i = 0; i < 1000; ++i) {
    term.push_back(std::ldexp(float(random.uniform(i)) - 0.5f, int(shard * 7 % 30) - 15));
  }
  return term;
}

std::vector<float> nccl_total(int ranks, Reduction reduction) {
  std::vector<float> total;
  run_nccl(ranks, [&](Communicator& all) {
    RankSum<float> sum(all, 12, reduction);
    const ShardRange own = shards_of_rank(12, all.rank(), ranks);
    for (std::int64_t s = own.first; s < own.end; ++s) {
      std::vector<float> term = nccl_term(s);
      sum.add(term);
    }
    const std::span<const float> found = sum.total();
    if (all.rank() == 0) total.assign(found.begin(), found.end());
  });
  return total;
}

TEST_CASE("nccl: the fixed tree keeps its bits, for NCCL adds nothing up there") {
  const auto before = nccl_calls();
  const std::vector<float> one = nccl_total(1, Reduction::kFixed);
  for (const int ranks : {2, 3, 5}) CHECK(nccl_total(ranks, Reduction::kFixed) == one);
  CHECK(nccl_calls()[3] == before[3]);
  CHECK(nccl_calls()[0] > before[0]);
}

TEST_CASE("nccl: the fast sum is NCCL's own, with other bits") {
  const auto before = nccl_calls();
  const std::vector<float> fast = nccl_total(5, Reduction::kFast);
  const std::vector<float> fixed = nccl_total(5, Reduction::kFixed);
  CHECK(nccl_calls()[3] - before[3] == 5);
  CHECK(fast != fixed);
  for (std::size_t i = 0; i < fast.size(); ++i) {
    CHECK(fast[i] == doctest::Approx(fixed[i]).epsilon(1e-3));
  }
}

TEST_CASE("nccl: a training has the bytes of one process") {
  const test::TempDir temp;
  const auto train = [&](Communicator* ranks, const std::filesystem::path& folder) {
    const train::Job job = test::small_job({"train.shards=6", "train.max_steps=5"});
    const auto backend = make_backend("onednn");
    train::RunOptions options{.folder = folder, .quiet = true, .facts = {}};
    options.ranks = ranks;
    train::Trainer(*backend, job, options).run();
  };
  train(nullptr, temp / "one");
  run_nccl(3, [&](Communicator& all) { train(&all, temp / "three"); });
  test::check_same_end(temp / "three", temp / "one", 5);
}

std::string nccl_refusal(const std::string& library) {
  OneRank one;
  try {
    nccl::join_by_nccl(one, {.library = library});
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBackendMissing);
    return error.what();
  }
  return "";
}

TEST_CASE("nccl: what is missing is named") {
  CHECK(nccl_refusal("libnccl.so.0").starts_with("NCCL cannot be loaded: libnccl.so.0: "));
  CHECK(nccl_refusal("libm.so.6") == "libm.so.6: it lacks ncclGetVersion");
}

}  // namespace
}  // namespace keel
