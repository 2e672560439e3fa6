#include "as2d/platform/temperatures.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "machine_for_test.h"

namespace as2d {
namespace {

using Readings = std::vector<std::pair<std::string, double>>;

Readings Read(const FakeMachine& machine) {
  Readings readings;
  for (const Temperature& t : ReadTemperatures(machine.roots())) {
    readings.emplace_back(t.sensor, t.celsius);
  }
  return readings;
}

TEST(Temperatures, OfZonesAndOfTheProcessorsOwnSensors) {
  FakeMachine machine;
  machine.Write("thermal/thermal_zone10/type", "skin");
  machine.Write("thermal/thermal_zone10/temp", "31000");
  machine.Write("thermal/thermal_zone2/type", "cpu-1-0-usr");
  machine.Write("thermal/thermal_zone2/temp", "55500");
  machine.Write("thermal/thermal_zone3/temp", "40000");
  machine.Write("thermal/cooling_device0/type", "Processor");
  machine.Write("hwmon/hwmon1/name", "k10temp");
  machine.Write("hwmon/hwmon1/temp1_input", "61125");
  machine.Write("hwmon/hwmon1/temp1_label", "Tctl");
  machine.Write("hwmon/hwmon1/temp3_input", "58000");
  machine.Write("hwmon/hwmon0/name", "nvme");
  machine.Write("hwmon/hwmon0/temp1_input", "38000");
  EXPECT_EQ(Read(machine), (Readings{{"cpu-1-0-usr", 55.5},
                                     {"thermal_zone3", 40},
                                     {"skin", 31},
                                     {"k10temp Tctl", 61.125},
                                     {"k10temp temp3", 58}}));
}

TEST(Temperatures, LeavesOutSensorsThatAreOff) {
  FakeMachine machine;
  EXPECT_TRUE(Read(machine).empty());
  int zone = 0;
  for (const char* const text : {"0", "-274000", "-5", "2147483647", "", "hot", "999000"}) {
    const std::string folder = "thermal/thermal_zone" + std::to_string(zone++);
    machine.Write(folder + "/type", "cpu");
    machine.Write(folder + "/temp", text);
  }
  machine.Write("thermal/thermal_zone7/type", "no file");
  EXPECT_TRUE(Read(machine).empty());
}

}  // namespace
}  // namespace as2d
