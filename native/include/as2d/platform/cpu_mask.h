#pragma once

#include <bitset>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace as2d {

/// A set of core ids, 0 <= id < kMaxCores. Ids are the kernel's (`cpu0`, `cpu1`, ...).
class CpuMask {
 public:
  /// Size of glibc's and bionic's fixed cpu_set_t.
  static constexpr int kMaxCores = 1024;

  CpuMask() = default;
  /// The set of the given ids; ids out of range are left out.
  CpuMask(std::initializer_list<int> cores);
  explicit CpuMask(std::span<const int> cores);

  /// Reads the kernel's list format: "0-3,5". Blanks at both ends are ignored and an empty text is
  /// the empty set (what sysfs says when no core is offline). nullopt: not such a list, a range
  /// that runs backwards, or an id of kMaxCores or more.
  static std::optional<CpuMask> Parse(std::string_view text);

  /// The same format: "0-3,5"; "" for the empty set.
  std::string ToString() const;

  /// False and no change if `core` is out of range.
  bool Add(int core);
  bool Contains(int core) const;
  int Count() const { return static_cast<int>(bits_.count()); }
  bool Empty() const { return bits_.none(); }

  CpuMask Intersect(const CpuMask& other) const;
  CpuMask Union(const CpuMask& other) const;
  /// The ids in ascending order.
  std::vector<int> Cores() const;

  friend bool operator==(const CpuMask& a, const CpuMask& b) { return a.bits_ == b.bits_; }

 private:
  std::bitset<kMaxCores> bits_;
};

}  // namespace as2d
