#include "as2d/platform/battery.h"

#include <gtest/gtest.h>

#include "machine_for_test.h"

namespace as2d {
namespace {

TEST(Battery, IsTheMachinesOwn) {
  FakeMachine machine;
  machine.Write("power/ac/type", "Mains");
  machine.Write("power/a-mouse/type", "Battery");
  machine.Write("power/a-mouse/scope", "Device");
  machine.Write("power/a-mouse/capacity", "5");
  machine.Write("power/battery/type", "Battery");
  machine.Write("power/battery/capacity", "81");
  machine.Write("power/battery/temp", "313");
  machine.Write("power/battery/status", "Discharging");
  const auto battery = ReadBattery(machine.roots());
  ASSERT_TRUE(battery);
  EXPECT_EQ(battery->percent, 81);
  EXPECT_EQ(battery->celsius, 31.3);
  EXPECT_EQ(battery->status, "Discharging");
}

TEST(Battery, SaysWhatItCan) {
  FakeMachine machine;
  EXPECT_FALSE(ReadBattery(machine.roots()));
  machine.Write("power/bms/type", "Battery");
  machine.Write("power/bms/capacity", "full");
  const auto battery = ReadBattery(machine.roots());
  ASSERT_TRUE(battery);
  EXPECT_FALSE(battery->percent);
  EXPECT_FALSE(battery->celsius);
  EXPECT_FALSE(battery->status);
}

}  // namespace
}  // namespace as2d
