#include "as2d/platform/affinity.h"

#include <gtest/gtest.h>

#include <thread>

namespace as2d {
namespace {

// The tests pin threads of their own, so that one test's mask is not the next one's start.
template <typename Body>
void OnThread(Body body) {
  std::thread(body).join();
}

TEST(Affinity, PinsTheCallingThreadOnlyAndReadsItBack) {
  if (!CanPinThreads()) {
    std::string error;
    EXPECT_FALSE(SetAffinity(CpuMask{0}, &error));
    EXPECT_NE(error, "");
    EXPECT_FALSE(ReadAffinity());
    EXPECT_FALSE(ReadProcessAffinity());
    return;
  }
  const auto before = ReadAffinity();
  ASSERT_TRUE(before);
  ASSERT_FALSE(before->Empty());
  OnThread([&] {
    const CpuMask last{before->Cores().back()};
    std::string error;
    ASSERT_TRUE(SetAffinity(last, &error)) << error;
    EXPECT_EQ(error, "");
    EXPECT_EQ(ReadAffinity(), last);
    EXPECT_EQ(ReadProcessAffinity(), before);
  });
  EXPECT_EQ(ReadAffinity(), before);
}

TEST(Affinity, SaysWhyACoreIsRefused) {
  OnThread([] {
    const auto before = ReadAffinity();
    std::string error;
    EXPECT_FALSE(SetAffinity(CpuMask{CpuMask::kMaxCores - 1}, &error));
    EXPECT_NE(error, "");
    EXPECT_FALSE(SetAffinity(CpuMask(), nullptr));
    EXPECT_EQ(ReadAffinity(), before);
  });
}

TEST(Affinity, NamesTheThreadAndCutsLongNames) {
  OnThread([] {
    ASSERT_TRUE(SetThreadName("as2d-target-1"));
    EXPECT_EQ(ThreadName(), "as2d-target-1");
    ASSERT_TRUE(SetThreadName("a-name-of-more-than-fifteen-bytes"));
    EXPECT_EQ(ThreadName(), "a-name-of-more-");
  });
}

TEST(Affinity, ThreadsHaveIdsOfTheirOwn) {
  const std::int64_t here = ThreadId();
  EXPECT_GT(here, 0);
  OnThread([&] { EXPECT_NE(ThreadId(), here); });
}

}  // namespace
}  // namespace as2d
