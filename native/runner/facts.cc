#include "facts.h"

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

#include "as2d/kernels/operators.h"

namespace as2d::runner {
namespace {

/// The processor's name; ARM kernels give none.
std::string CpuName(const SystemRoots& roots, const std::string& otherwise) {
  std::ifstream file(roots.proc / "cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name") || line.starts_with("Hardware")) {
      return line.substr(colon + 2);
    }
  }
  return otherwise;
}

std::optional<std::vector<int>> CoresOf(const std::optional<CpuMask>& mask) {
  return mask ? std::optional(mask->Cores()) : std::nullopt;
}

void Write(Json& json, const CoreCluster& cluster) {
  json.BeginObject()
      .Field("cores", cluster.cores)
      .Field("capacity", cluster.capacity)
      .Field("max_khz", cluster.max_khz)
      .Field("model", cluster.model)
      .Field("governor", cluster.governor)
      .Field("features", cluster.features)
      .EndObject();
}

void Write(Json& json, const Cache& cache) {
  json.BeginObject()
      .Field("level", cache.level)
      .Field("kind", cache.kind)
      .Field("bytes", cache.bytes)
      .Field("cores", cache.cores.Cores())
      .EndObject();
}

}  // namespace

Machine::Machine(SystemRoots roots) : roots_(std::move(roots)), topology_(ReadTopology(roots_)) {}

Moment Machine::Now() const {
  Moment moment;
  moment.temperatures = ReadTemperatures(roots_);
  for (const CoreCluster& cluster : topology_.clusters) {
    moment.rates.push_back(ReadClockRates(cluster.cores, roots_));
    moment.governors.push_back(cluster.governor);
  }
  moment.battery = ReadBattery(roots_);
  return moment;
}

std::optional<double> Machine::Hottest() const {
  std::optional<double> hottest;
  for (const Temperature& sensor : ReadTemperatures(roots_)) {
    hottest = std::max(hottest.value_or(sensor.celsius), sensor.celsius);
  }
  return hottest;
}

void Machine::Tell(Report& report, const std::optional<std::string>& version,
                   const std::optional<std::string>& problem) const {
  utsname system{};
  uname(&system);
  report.Line("machine", [&](Json& json) {
    json.Field("cpu", CpuName(roots_, system.machine))
        .Field("system", std::string(system.sysname) + ' ' + system.release)
        .Field("architecture", system.machine)
        .Field("kernels", KernelName())
        .Field("onnxruntime", version)
        .Field("problem", problem)
        .Field("cores", topology_.Mask().Cores())
        .Key("clusters")
        .BeginArray();
    for (const CoreCluster& cluster : topology_.clusters) Write(json, cluster);
    json.EndArray()
        .Field("source", NameOf(topology_.source))
        .Field("quota", topology_.cpu_quota.value_or(0))
        .Field("quota_known", topology_.cpu_quota.has_value())
        .Field("can_pin", topology_.can_pin)
        .Field("allowed", CoresOf(topology_.allowed))
        .Field("offline", CoresOf(topology_.offline))
        .Field("siblings", topology_.siblings)
        .Key("caches")
        .BeginArray();
    for (const Cache& cache : topology_.caches) Write(json, cache);
    json.EndArray();
  });
}

void Machine::TellMoment(Report& report) const {
  const Moment moment = Now();
  report.Line("moment", [&](Json& json) {
    json.Key("moment");
    Write(json, moment);
  });
}

void Write(Json& json, const Moment& moment) {
  json.BeginObject().Key("temperatures").BeginArray();
  for (const Temperature& sensor : moment.temperatures) {
    json.BeginArray().Value(sensor.sensor).Value(sensor.celsius).EndArray();
  }
  json.EndArray().Key("limits").BeginArray();
  for (const ClockRates& rates : moment.rates) json.Value(rates.limit);
  json.EndArray().Key("frequencies").BeginArray();
  for (const ClockRates& rates : moment.rates) json.Value(rates.now);
  json.EndArray().Field("governors", moment.governors).Key("battery");
  if (moment.battery) {
    json.BeginObject()
        .Field("percent", moment.battery->percent)
        .Field("celsius", moment.battery->celsius)
        .Field("status", moment.battery->status)
        .EndObject();
  } else {
    json.Value(std::nullopt);
  }
  json.EndObject();
}

}  // namespace as2d::runner
