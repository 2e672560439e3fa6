#include <gtest/gtest.h>

#include <string>

#include "machine_for_test.h"
#include "room.h"

namespace as2d::runner {
namespace {

void Hold(FakeMachine& machine, int mib) {
  machine.Write("proc/self/status",
                "Name:\tx\nVmHWM:\t9999999 kB\nVmRSS:\t" + std::to_string(mib * 1024) + " kB");
}

void Free(FakeMachine& machine, int mib) {
  machine.Write("proc/meminfo", "MemTotal: 9999999 kB\nMemFree: 1 kB\nMemAvailable: " +
                                    std::to_string(mib * 1024) + " kB");
}

TEST(RunnerRoom, TheLargestSoFarTakesAtMostHalfOfWhatIsFree) {
  FakeMachine machine;
  Hold(machine, 10);
  Free(machine, 200);
  Room room(machine.roots());
  EXPECT_TRUE(room.ForAnother());
  Hold(machine, 110);
  room.Opened();
  EXPECT_TRUE(room.ForAnother());
  Hold(machine, 130);
  room.Opened();
  Free(machine, 199);
  EXPECT_FALSE(room.ForAnother());
}

TEST(RunnerRoom, NotKnownIsNoRoom) {
  FakeMachine machine;
  Hold(machine, 10);
  EXPECT_FALSE(Room(machine.roots()).ForAnother()) << "what is free";
  FakeMachine silent;
  Free(silent, 200);
  EXPECT_FALSE(Room(silent.roots()).ForAnother()) << "what is held";
}

}  // namespace
}  // namespace as2d::runner
