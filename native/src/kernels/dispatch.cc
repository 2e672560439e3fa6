#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "as2d/error.h"
#include "as2d/platform/affinity.h"
#include "kernels.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace as2d::kernels {
namespace {

#if defined(__x86_64__)

bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}

bool HasAvx512Vnni() {
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

/// The processor has them, and the system lets this process use them: a thread's state grows by
/// 8 KiB, so that they have to be asked for, once for a process.
bool HasTiles() {
#if defined(__linux__)
  unsigned a = 7;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  asm("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  constexpr unsigned kTile = 1U << 24;
  constexpr unsigned kInt8 = 1U << 25;
  if ((d & kTile) == 0 || (d & kInt8) == 0) return false;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of <asm/prctl.h>
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

#elif defined(__aarch64__) && defined(__linux__)

bool HasDotProduct() {
  constexpr unsigned long kDotProd = 1UL << 20;  // HWCAP_ASIMDDP of <asm/hwcap.h>
  return (getauxval(AT_HWCAP) & kDotProd) != 0;
}

#endif

#if defined(__aarch64__)
constexpr std::string_view kBaseline = "asimd";
#else
constexpr std::string_view kBaseline = "sse2";
#endif

}  // namespace

std::vector<const Kernels*> Runnable() {
  return Runnable(CpuInfo::Read(), ReadProcessAffinity().value_or(CpuMask()));
}

std::vector<const Kernels*> Runnable(const CpuInfo& info, const CpuMask& cores) {
  std::vector<const Kernels*> sets = {Portable()};
  // The processor answers for the core that asks it; the others are asked for by name.
  const auto add = [&](const Kernels* set, bool (*runs)(),
                       std::initializer_list<std::string_view> needs) {
    const auto lacking = [&](std::string_view need) { return info.Lacks(cores, need, kBaseline); };
    if (set != nullptr && runs() && std::ranges::none_of(needs, lacking)) sets.push_back(set);
  };
#if defined(__x86_64__)
  __builtin_cpu_init();
  add(Avx2(), HasAvx2, {"avx2", "fma", "f16c"});
  add(Avx512Vnni(), HasAvx512Vnni, {"avx512_vnni", "avx512bw", "avx512vl", "avx512dq"});
  if (sets.back() == Avx512Vnni()) add(Amx(), HasTiles, {"amx_tile", "amx_int8"});
#elif defined(__aarch64__) && defined(__linux__)
  add(NeonDotProd(), HasDotProduct, {"asimddp"});
#else
  static_cast<void>(add);
#endif
  return sets;
}

const Kernels& BestUpTo(std::string_view most) {
  // From the plainest to the best; a processor has those of its own kind only.
  static constexpr std::array<std::string_view, 5> kNames = {"portable", "neon-dotprod", "avx2",
                                                             "avx512vnni", "amx"};
  const auto rank = [](std::string_view name) {
    return std::find(kNames.begin(), kNames.end(), name) - kNames.begin();
  };
  if (rank(most) == std::ssize(kNames)) {
    std::string names;
    for (const std::string_view name : kNames)
      names += (names.empty() ? "" : ", ") + std::string(name);
    throw Error("AS2D_KERNELS is '" + std::string(most) + "', which is none of " + names);
  }
  const Kernels* best = nullptr;
  for (const Kernels* const set : Runnable()) {
    if (rank(set->name) <= rank(most)) best = set;
  }
  return *best;
}

const Kernels& Best() {
  static const Kernels& best = [&]() -> const Kernels& {
    const char* const most = std::getenv("AS2D_KERNELS");
    return most == nullptr || *most == '\0' ? *Runnable().back() : BestUpTo(most);
  }();
  return best;
}

}  // namespace as2d::kernels
