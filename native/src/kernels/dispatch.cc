#include "kernels.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace as2d::kernels {
namespace {

const Kernels& Choose() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (Avx512Vnni() != nullptr && __builtin_cpu_supports("avx512vnni") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq")) {
    return *Avx512Vnni();
  }
  if (Avx2() != nullptr && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return *Avx2();
  }
#elif defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kDotProd = 1UL << 20;  // HWCAP_ASIMDDP of <asm/hwcap.h>
  if (NeonDotProd() != nullptr && (getauxval(AT_HWCAP) & kDotProd) != 0) return *NeonDotProd();
#endif
  return *Portable();
}

}  // namespace

const Kernels& Best() {
  static const Kernels& best = Choose();
  return best;
}

}  // namespace as2d::kernels
