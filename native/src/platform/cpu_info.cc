#include "as2d/platform/cpu_info.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <utility>

#include "system_file.h"

namespace as2d {
namespace {

// Those that a linear layer or an attention can be computed with.
constexpr std::array<std::string_view, 23> kArithmetic = {
    "avx2",        "fma",         "f16c",        "avx_vnni", "avx512f",  "avx512bw",
    "avx512vl",    "avx512dq",    "avx512_vnni", "amx_tile", "amx_int8", "amx_bf16",
    "avx512_bf16", "avx512_fp16", "asimd",       "asimdhp",  "asimddp",  "i8mm",
    "bf16",        "sve",         "sve2",        "sme",      "sme2"};

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Lines up to an empty one.
struct Block {
  std::optional<int> core;
  CpuInfo::Core facts;
  std::string implementer;
  std::string part;

  void Take(std::string_view key, std::string_view value) {
    if (key == "processor") {
      core = ParseNumber<int>(value);
    } else if (key == "flags" || key == "Features") {
      std::istringstream words{std::string(value)};
      for (std::string word; words >> word;) facts.features.insert(word);
    } else if (key == "model name") {
      facts.model = value;
    } else if (key == "CPU implementer") {
      implementer = value;
    } else if (key == "CPU part") {
      part = value;
    }
  }

  CpuInfo::Core Facts() const {
    CpuInfo::Core core_facts = facts;
    if (!implementer.empty() && !part.empty()) core_facts.model = implementer + ':' + part;
    return core_facts;
  }
};

}  // namespace

CpuInfo CpuInfo::Read(const std::filesystem::path& proc) {
  std::map<int, Core> cores;
  Core common;  // of a block that is of no core: old ARM kernels say once what is true of all
  Block block;
  const auto close = [&] {
    if (block.core) {
      cores[*block.core] = block.Facts();
    } else {
      Core facts = block.Facts();
      if (!facts.features.empty()) common.features = std::move(facts.features);
      if (!facts.model.empty()) common.model = std::move(facts.model);
    }
    block = {};
  };
  std::ifstream stream(proc / "cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) {
      close();
      continue;
    }
    const std::string_view text = line;
    block.Take(Trim(text.substr(0, colon)), Trim(text.substr(colon + 1)));
  }
  close();
  for (auto& [id, core] : cores) {
    if (core.features.empty()) core.features = common.features;
    if (core.model.empty()) core.model = common.model;
  }
  return CpuInfo(std::move(cores));
}

const CpuInfo::Core* CpuInfo::Find(int core) const {
  const auto found = cores_.find(core);
  return found == cores_.end() ? nullptr : &found->second;
}

std::optional<std::vector<std::string>> CpuInfo::CommonFeatures(const CpuMask& cores) const {
  const std::vector<int> ids = cores.Cores();
  const auto known = [&](int id) { return Find(id) != nullptr && !Find(id)->features.empty(); };
  if (ids.empty() || !std::ranges::all_of(ids, known)) return std::nullopt;
  std::vector<std::string> features;
  for (const std::string_view feature : kArithmetic) {
    const auto has = [&](int id) { return Find(id)->features.contains(feature); };
    if (std::ranges::all_of(ids, has)) features.emplace_back(feature);
  }
  return features;
}

bool CpuInfo::Lacks(const CpuMask& cores, std::string_view feature,
                    std::string_view baseline) const {
  return std::ranges::any_of(cores.Cores(), [&](int id) {
    const Core* const core = Find(id);
    return core != nullptr && core->features.contains(baseline) &&
           !core->features.contains(feature);
  });
}

std::string CpuInfo::Model(const CpuMask& cores) const {
  std::set<std::string> models;
  for (const int id : cores.Cores()) {
    if (const Core* const core = Find(id); core && !core->model.empty()) models.insert(core->model);
  }
  std::string text;
  for (const std::string& model : models) text += (text.empty() ? "" : ", ") + model;
  return text;
}

}  // namespace as2d
