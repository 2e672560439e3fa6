#include "as2d/platform/cpu_mask.h"

#include <charconv>

namespace as2d {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// The whole of `text` as a core id.
std::optional<int> ParseCore(std::string_view text) {
  // from_chars takes a minus sign, which would make "--1" a range.
  if (text.empty() || text.front() == '-') return std::nullopt;
  int core = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), core);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (core >= CpuMask::kMaxCores) return std::nullopt;
  return core;
}

}  // namespace

CpuMask::CpuMask(std::initializer_list<int> cores)
    : CpuMask(std::span<const int>(cores.begin(), cores.size())) {}

CpuMask::CpuMask(std::span<const int> cores) {
  for (const int core : cores) Add(core);
}

std::optional<CpuMask> CpuMask::Parse(std::string_view text) {
  CpuMask mask;
  text = Trim(text);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    if (comma == text.size() - 1) return std::nullopt;  // A comma with nothing after it.
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);

    const std::size_t dash = item.find('-');
    const std::optional<int> first = ParseCore(item.substr(0, dash));
    const std::optional<int> last =
        dash == std::string_view::npos ? first : ParseCore(item.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    for (int core = *first; core <= *last; ++core) mask.Add(core);
  }
  return mask;
}

std::string CpuMask::ToString() const {
  std::string text;
  for (int core = 0; core < kMaxCores; ++core) {
    if (!Contains(core)) continue;
    int last = core;
    while (Contains(last + 1)) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(core);
    if (last > core) text += '-' + std::to_string(last);
    core = last;
  }
  return text;
}

bool CpuMask::Add(int core) {
  if (core < 0 || core >= kMaxCores) return false;
  bits_.set(static_cast<std::size_t>(core));
  return true;
}

bool CpuMask::Contains(int core) const {
  return core >= 0 && core < kMaxCores && bits_.test(static_cast<std::size_t>(core));
}

CpuMask CpuMask::Intersect(const CpuMask& other) const {
  CpuMask result = *this;
  result.bits_ &= other.bits_;
  return result;
}

CpuMask CpuMask::Union(const CpuMask& other) const {
  CpuMask result = *this;
  result.bits_ |= other.bits_;
  return result;
}

std::vector<int> CpuMask::Cores() const {
  std::vector<int> cores;
  for (int core = 0; core < kMaxCores; ++core) {
    if (Contains(core)) cores.push_back(core);
  }
  return cores;
}

}  // namespace as2d
