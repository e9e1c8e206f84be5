// Arithmetic that is rounded otherwise than to nearest: the host's processor does it after its
// rounding mode was set.
#include <xmmintrin.h>

#include "tests/ptx/canonical.h"
#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

// Rounds like this while it lives. The compiler does not know of the mode: nothing that depends on
// it may move past the constructor or destructor, so both claim to change all memory.
class Rounding {
 public:
  explicit Rounding(unsigned mode) : former_(_mm_getcsr()) {
    _mm_setcsr((former_ & ~unsigned(_MM_ROUND_MASK)) | mode);
    asm volatile("" ::: "memory");
  }
  ~Rounding() {
    asm volatile("" ::: "memory");
    _mm_setcsr(former_);
  }
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;

 private:
  unsigned former_;
};

// Operands and results go through memory, which keeps them between the two walls.
template <auto kOp, unsigned kMode, class T>
void run_rounded(Warp& warp, const Instruction& i, Lanes lanes) {
  const int sources = int(i.form->operands.size()) - 1;
  const T* const a = reinterpret_cast<const T*>(warp.at(i.place[1]));
  const T* const b = reinterpret_cast<const T*>(warp.at(i.place[sources > 1 ? 2 : 1]));
  const T* const c = reinterpret_cast<const T*>(warp.at(i.place[sources > 2 ? 3 : 1]));
  T made[kLanes];
  {
    const Rounding rounding(kMode);
    for (int lane = 0; lane < kLanes; ++lane) made[lane] = kOp(a[lane], b[lane], c[lane]);
    asm volatile("" ::"r"(&made) : "memory");
  }
  for (T& x : made) x = canonical(x);
  keep(warp.at(i.place[0]), made, lanes);
}

template <unsigned kMode, class T>
void add_mode(Forms& forms, const std::string& mode) {
  const auto put = [&](const char* stem, Handler run, int sources) {
    forms.add({stem + mode,
               run,
               Flow::kPlain,
               1,
               std::vector<Type>(std::size_t(1 + sources), type_of<T>()),
               {}});
  };
  put("add", run_rounded<[](T a, T b, T) { return a + b; }, kMode, T>, 2);
  put("sub", run_rounded<[](T a, T b, T) { return a - b; }, kMode, T>, 2);
  put("mul", run_rounded<[](T a, T b, T) { return a * b; }, kMode, T>, 2);
  put("fma", run_rounded<[](T a, T b, T c) { return std::fma(a, b, c); }, kMode, T>, 3);
}

}  // namespace

void add_rounded_forms(Forms& forms) {
  add_mode<_MM_ROUND_TOWARD_ZERO, float>(forms, ".rz.f32");
  add_mode<_MM_ROUND_DOWN, float>(forms, ".rm.f32");
  add_mode<_MM_ROUND_UP, float>(forms, ".rp.f32");
  add_mode<_MM_ROUND_TOWARD_ZERO, double>(forms, ".rz.f64");
  add_mode<_MM_ROUND_DOWN, double>(forms, ".rm.f64");
  add_mode<_MM_ROUND_UP, double>(forms, ".rp.f64");
}

}  // namespace keel::ptx
