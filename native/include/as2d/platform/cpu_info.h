#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "as2d/platform/cpu_mask.h"

namespace as2d {

/// What /proc/cpuinfo says of each core. On x86 the instruction sets are each core's own; on ARM
/// the kernel lists for every core what all of them have, unless the vendor has changed that.
class CpuInfo {
 public:
  struct Core {
    /// Instruction sets in the kernel's words ("avx512_vnni", "asimddp"); empty if unknown.
    std::set<std::string, std::less<>> features;
    /// "Intel(R) Xeon(R) ...", or an ARM core's implementer and part, "0x41:0xd05"; "" if unknown.
    std::string model;
  };

  CpuInfo() = default;
  explicit CpuInfo(std::map<int, Core> cores) : cores_(std::move(cores)) {}
  /// Of the file `cpuinfo` in `proc`; a core that it does not list is unknown.
  static CpuInfo Read(const std::filesystem::path& proc = "/proc");

  /// Of the instruction sets that speed up a model's arithmetic, those that all of `cores` have,
  /// the older first. nullopt: unknown of one of them.
  std::optional<std::vector<std::string>> CommonFeatures(const CpuMask& cores) const;

  /// One of `cores` is known to lack it. A list without `baseline`, which every processor of the
  /// architecture has, says nothing: an emulator may show the list of its host.
  bool Lacks(const CpuMask& cores, std::string_view feature, std::string_view baseline) const;

  /// The model of `cores`, each once; "" if unknown.
  std::string Model(const CpuMask& cores) const;

 private:
  const Core* Find(int core) const;

  std::map<int, Core> cores_;
};

}  // namespace as2d
