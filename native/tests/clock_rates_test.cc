#include "as2d/platform/clock_rates.h"

#include <gtest/gtest.h>

#include <vector>

#include "machine_for_test.h"

namespace as2d {
namespace {

TEST(ClockRates, OfTheFastestCore) {
  FakeMachine machine;
  machine.Write("cpu/cpu4/cpufreq/scaling_cur_freq", "900000");
  machine.Write("cpu/cpu4/cpufreq/scaling_max_freq", "2000000");
  machine.Write("cpu/cpu5/cpufreq/scaling_cur_freq", "1700000");
  machine.Write("cpu/cpu5/cpufreq/scaling_max_freq", "1800000");
  machine.Write("cpu/cpu6/cpufreq/scaling_cur_freq", "2500000");
  const ClockRates rates = ReadClockRates(std::vector{4, 5}, machine.roots());
  EXPECT_EQ(rates.now, 1700000);
  EXPECT_EQ(rates.limit, 2000000);
}

TEST(ClockRates, UnknownWhereNobodyTells) {
  FakeMachine machine;
  machine.Write("cpu/cpu0/cpufreq/scaling_cur_freq", "<unsupported>");
  machine.Write("cpu/cpu0/cpufreq/scaling_max_freq", "0");
  const ClockRates rates = ReadClockRates(std::vector{0, 1}, machine.roots());
  EXPECT_FALSE(rates.now);
  EXPECT_FALSE(rates.limit);
}

}  // namespace
}  // namespace as2d
