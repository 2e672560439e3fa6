#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "as2d/platform/system_roots.h"
#include "as2d/platform/topology.h"

namespace as2d {

/// A machine in a folder of its own, removed at the end.
class FakeMachine {
 public:
  FakeMachine() {
    std::string name = (std::filesystem::temp_directory_path() / "as2d-machine-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    root_ = name;
    roots_ = {root_ / "cpu",     root_ / "proc",  root_ / "cgroup",
              root_ / "thermal", root_ / "hwmon", root_ / "power"};
  }
  ~FakeMachine() { std::filesystem::remove_all(root_); }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  const SystemRoots& roots() const { return roots_; }

  void Write(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  void Online(const std::string& list) { Write("cpu/online", list); }
  void Capacities(const std::vector<int>& values) { Figures(values, "cpu_capacity"); }
  void MaxKhz(const std::vector<int>& values) { Figures(values, "cpufreq/cpuinfo_max_freq"); }
  void Siblings(int core, const std::string& list) {
    Write("cpu/cpu" + std::to_string(core) + "/topology/thread_siblings_list", list);
  }

  Topology Read(const std::string& allowed) const {
    return ReadTopology(roots_, CpuMask::Parse(allowed).value());
  }

 private:
  void Figures(const std::vector<int>& values, const std::string& name) {
    for (std::size_t core = 0; core < values.size(); ++core) {
      Write("cpu/cpu" + std::to_string(core) + "/" + name, std::to_string(values[core]));
    }
  }

  std::filesystem::path root_;
  SystemRoots roots_;
};

}  // namespace as2d
