#include "as2d/decode/draft_channel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

namespace as2d {
namespace {

using namespace std::chrono_literals;
using Tokens = std::vector<TokenId>;

// Longer than any test may take: what ends in time was not waited for.
constexpr auto kForEver = 1000s;

DraftRequest Request(TokenId token) {
  DraftRequest request;
  request.history = {token};
  request.count = 1;
  return request;
}

TEST(DraftChannelTest, CarriesRequestsAndRepliesInOrder) {
  DraftChannel channel(kForEver);
  std::thread draft_lane([&] {
    while (const std::optional<DraftRequest> request = channel.Next()) {
      channel.Answer({.tokens = {request->history.front() + 1}});
    }
  });
  for (TokenId token = 0; token < 200; ++token) {
    channel.Ask(Request(token));
    const std::optional<DraftReply> reply = channel.Wait();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->tokens, Tokens{token + 1});
  }
  channel.Close();
  draft_lane.join();
  EXPECT_FALSE(channel.timed_out());
}

TEST(DraftChannelTest, ARequestIsGivenOnceWithAllThatIsInIt) {
  DraftChannel channel(kForEver);
  const auto window = std::make_shared<const Window>();
  channel.Ask({.window = window, .history = {1, 2}, .count = 3, .least_confidence = 0.5F});
  const std::optional<DraftRequest> request = channel.Next();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->window, window);
  EXPECT_EQ(request->history, (Tokens{1, 2}));
  EXPECT_EQ(request->count, 3U);
  EXPECT_EQ(request->least_confidence, 0.5F);
  channel.Close();
  EXPECT_FALSE(channel.Next()) << "not the same again";
}

TEST(DraftChannelTest, TellsOnlyWhatIsWantedAndWaitsForNothing) {
  DraftChannel channel(kForEver);
  EXPECT_EQ(channel.TakeTold(), Tokens{});
  channel.Ask(Request(1));
  ASSERT_TRUE(channel.Next());
  EXPECT_TRUE(channel.Tell(Tokens{2, 3}));
  EXPECT_TRUE(channel.Tell(Tokens{4}));
  EXPECT_EQ(channel.TakeTold(), (Tokens{2, 3, 4}));
  EXPECT_EQ(channel.TakeTold(), Tokens{}) << "each once";
  EXPECT_TRUE(channel.Tell(Tokens{5}));
  channel.Ask(Request(6));
  EXPECT_EQ(channel.TakeTold(), Tokens{}) << "what was told of another request";
  EXPECT_FALSE(channel.Tell(Tokens{7})) << "likewise";
  ASSERT_TRUE(channel.Next());
  EXPECT_TRUE(channel.Tell(Tokens{9}));
  channel.Forget();
  EXPECT_FALSE(channel.Tell(Tokens{10}));
  EXPECT_EQ(channel.TakeTold(), Tokens{});
  channel.Close();
  EXPECT_FALSE(channel.Tell(Tokens{11}));
}

TEST(DraftChannelTest, WaitsNoLongerThanItsPatience) {
  DraftChannel channel(20ms);
  channel.Ask(Request(1));
  EXPECT_FALSE(channel.Wait());
  EXPECT_TRUE(channel.timed_out());
  EXPECT_FALSE(channel.Next()) << "what nobody waits for is not drafted";
}

TEST(DraftChannelTest, AReplyThatComesTooLateIsNotTakenForTheNext) {
  DraftChannel channel(20ms);
  channel.Ask(Request(1));
  EXPECT_TRUE(channel.Next());
  EXPECT_FALSE(channel.Wait());
  channel.Ask(Request(2));
  channel.Answer({.tokens = {1}});
  EXPECT_FALSE(channel.Wait());
}

TEST(DraftChannelTest, CloseWakesBothSides) {
  DraftChannel channel(kForEver);
  channel.Ask(Request(1));
  EXPECT_TRUE(channel.Next());
  std::thread target_lane([&] { EXPECT_FALSE(channel.Wait()); });
  std::thread draft_lane([&] { EXPECT_FALSE(channel.Next()); });
  std::this_thread::sleep_for(5ms);
  channel.Close();
  target_lane.join();
  draft_lane.join();
  EXPECT_FALSE(channel.timed_out());
}

TEST(DraftChannelTest, OnceClosedNobodyWaits) {
  DraftChannel channel(kForEver);
  channel.Close();
  channel.Ask(Request(1));
  EXPECT_FALSE(channel.Next());
  EXPECT_FALSE(channel.Wait());
}

TEST(DraftChannelTest, AReplyThatCameBeforeTheEndIsStillOne) {
  DraftChannel channel(kForEver);
  channel.Ask(Request(1));
  channel.Answer({.tokens = {7}});
  channel.Close();
  const std::optional<DraftReply> reply = channel.Wait();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->tokens, Tokens{7});
  EXPECT_FALSE(channel.Wait());
}

}  // namespace
}  // namespace as2d
