#include "common/http2_front/call_meter.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/rng.h"

namespace medley::http2_front {
namespace {

using Verdict = CallMeter::Verdict;

constexpr uint8_t kData = 0, kHeaders = 1, kPriority = 2, kReset = 3, kSettings = 4, kPing = 6, kWindow = 8,
                  kContinuation = 9, kUnknown = 200;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;

std::string Number(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
  return out;
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload = "") {
  return Number(static_cast<uint32_t>(payload.size())).substr(1) + static_cast<char>(type) + static_cast<char>(flags) +
         Number(stream) + payload;
}

const std::string kIntroduction = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0);

std::string Call(uint32_t stream) { return Frame(kHeaders, kEndHeaders, stream, "fields"); }
std::string Cancel(uint32_t stream) { return Frame(kReset, 0, stream, Number(8)); }
std::string Answer(uint32_t stream) {
  return Frame(kHeaders, kEndHeaders, stream, "fields") + Frame(kHeaders, kEndHeaders | kEndStream, stream, "trailers");
}

class CallMeterTest : public testing::Test {
 protected:
  std::unique_ptr<CallMeter> Introduced() {
    auto meter = std::make_unique<CallMeter>(limits_, budget_, now_);
    EXPECT_EQ(meter->FromClient(kIntroduction, now_).passed, kIntroduction.size());
    return meter;
  }
  void Wait(base::nanoseconds time) { now_ += time; }

  base::SteadyTime now_ = base::SteadyTime(base::seconds(1000));
  CallBudget::Options options_{
      .max_calls = 40, .forgotten_per_second = 10, .own_calls = 4, .own_abandoned = 2, .own_forgotten_per_second = 1};
  CallBudget budget_{options_};
  CallMeter::Limits limits_{.max_open = 100, .control_burst = 10, .control_per_second = 5, .max_field_bytes = 1000};
};

TEST_F(CallMeterTest, CallsAreOpenUntilTheServerAnswers) {
  const auto meter = Introduced();
  EXPECT_TRUE(meter->introduced());
  EXPECT_EQ(meter->FromClient(Call(1) + Call(3) + Frame(kData, kEndStream, 1, "message"), now_).verdict,
            Verdict::kPass);
  EXPECT_EQ(meter->open(), 2);
  meter->FromServer(Frame(kSettings, 0, 0) + Answer(1), now_);
  EXPECT_EQ(meter->open(), 1);
  meter->FromServer(Answer(3) + Frame(kReset, 0, 3, Number(0)), now_);  // the client had not ended its half
  EXPECT_EQ(meter->open(), 0);
  EXPECT_EQ(budget_.calls(now_), 0);
}

// Cancelled by the client, refused by the server as invalid, or left behind by a connection.
TEST_F(CallMeterTest, AbandonedCallsCountUntilTheyAreForgotten) {
  auto meter = Introduced();
  EXPECT_EQ(meter->FromClient(Call(1) + Call(3) + Call(5) + Cancel(1), now_).verdict, Verdict::kPass);
  meter->FromServer(Frame(kReset, 0, 3, Number(1)), now_);
  EXPECT_EQ(meter->open(), 1);
  EXPECT_EQ(budget_.calls(now_), 3);
  meter.reset();
  EXPECT_EQ(budget_.calls(now_), 3);
  Wait(base::milliseconds(200));
  EXPECT_EQ(budget_.calls(now_), 1);
  Wait(base::seconds(1));
  EXPECT_EQ(budget_.calls(now_), 0);
}

TEST_F(CallMeterTest, RapidResetIsPacedAndDisturbsNoOtherConnection) {
  const auto attacker = Introduced();
  std::string flood;
  for (uint32_t s = 1; s < 2000; s += 2) flood += Call(s) + Cancel(s);
  const auto first = attacker->FromClient(flood, now_);
  EXPECT_EQ(first.verdict, Verdict::kWait);
  EXPECT_EQ(budget_.calls(now_), 20);  // half of the budget
  EXPECT_EQ(first.passed, 20 * (Call(1) + Cancel(1)).size());
  EXPECT_EQ(attacker->FromClient(flood.substr(first.passed), now_).passed, 0U);

  const auto honest = Introduced();
  EXPECT_TRUE(budget_.HasRoom(now_));
  EXPECT_EQ(honest->FromClient(Call(1) + Call(3) + Call(5) + Call(7), now_).verdict, Verdict::kPass);
  EXPECT_EQ(honest->FromClient(Call(9), now_).verdict, Verdict::kWait);  // more than what every connection may have
  honest->FromServer(Answer(1), now_);
  EXPECT_EQ(honest->FromClient(Call(9), now_).verdict, Verdict::kPass);

  Wait(base::seconds(1));
  const auto later = attacker->FromClient(flood.substr(first.passed), now_);
  EXPECT_EQ(later.verdict, Verdict::kWait);
  EXPECT_EQ(later.passed, 6 * (Call(1) + Cancel(1)).size());  // 10 were forgotten, and 4 are those of another
}

TEST_F(CallMeterTest, NewConnectionsWaitWhileAbandonedCallsFillTheBudget) {
  for (int i = 0; i < 10; ++i) {  // each leaves what it may have
    const auto attacker = Introduced();
    attacker->FromClient(Call(1) + Call(3) + Call(5) + Call(7), now_);
  }
  EXPECT_FALSE(budget_.HasRoom(now_));
  Wait(base::milliseconds(100));
  EXPECT_TRUE(budget_.HasRoom(now_));
}

// Issue 44: eight connections with sixteen calls each used up the 128 threads of a server, which then refused all.
TEST(CallBudgetTest, ThreadsAreLeftToOthers) {
  const base::SteadyTime now{base::seconds(1)};
  CallBudget budget({.threads = 128});
  int opened = 0;
  for (int connection = 0; connection < 8; ++connection) {
    int open = 0;
    while (open < 1000 && budget.Open(open, 0, now)) ++open;
    opened += open;
  }
  EXPECT_EQ(opened, 64 + 7 * 4) << "half, and a few calls of each further connection";
  EXPECT_FALSE(budget.Open(4, 0, now));
  EXPECT_TRUE(budget.Open(3, 0, now));
  EXPECT_FALSE(budget.Open(0, 4, now)) << "it abandons its calls";
  budget.End(40);
  EXPECT_TRUE(budget.Open(4, 0, now)) << "threads are free again";
  CallBudget waiting({.threads = 0});
  for (int call = 0; call < 300; ++call) EXPECT_TRUE(waiting.Open(call % 10, 0, now));
}

TEST_F(CallMeterTest, FramesWithoutACallArePaced) {
  for (const std::string& frame :
       {Frame(kPing, 0, 0, "12345678"), Frame(kSettings, 0, 0), Frame(kPriority, 0, 1, "12345"), Frame(kData, 0, 1),
        Frame(kReset, 0, 99, Number(8)), Frame(kUnknown, 0, 0, "x"), Frame(kHeaders, kEndHeaders, 1, "trailers")}) {
    Wait(base::seconds(10));
    const auto meter = Introduced();
    ASSERT_EQ(meter->FromClient(Call(1), now_).verdict, Verdict::kPass);
    std::string flood;
    for (int i = 0; i < 100; ++i) flood += frame;
    const auto first = meter->FromClient(flood, now_);
    EXPECT_EQ(first.verdict, Verdict::kWait);
    EXPECT_EQ(first.passed / frame.size(), 9U);  // SETTINGS of the introduction was one
    Wait(base::seconds(1));
    EXPECT_EQ(meter->FromClient(flood.substr(first.passed), now_).passed / frame.size(), 5U);
  }
}

TEST_F(CallMeterTest, WhatCarriesDataIsNotPaced) {
  const auto meter = Introduced();
  std::string flow = Call(1);
  for (int i = 0; i < 10'000; ++i) flow += Frame(kData, 0, 1, "x") + Frame(kWindow, 0, 0, Number(1));
  EXPECT_EQ(meter->FromClient(flow, now_).passed, flow.size());
}

TEST_F(CallMeterTest, FramesThatClientsNeverSendCloseTheConnection) {
  std::string endless = Frame(kHeaders, 0, 1, "fields");
  for (int i = 0; i < 10; ++i) endless += Frame(kContinuation, 0, 1, std::string(100, 'x'));
  std::string many;
  for (uint32_t s = 1; s < 300; s += 2) many += Call(s);
  CallBudget large(CallBudget::Options{});
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n"), std::string("\0", 1), kIntroduction.substr(0, 24) + Call(1),
        kIntroduction + endless, kIntroduction + many}) {
    CallMeter meter(limits_, large, now_);
    const auto progress = meter.FromClient(bytes, now_);
    EXPECT_EQ(progress.verdict, Verdict::kClose) << bytes.substr(0, 40);
    EXPECT_STRNE(progress.why, "");
  }
}

// Bytes arrive in any pieces, with the same result.
TEST_F(CallMeterTest, PiecesDoNotMatter) {
  constexpr uint64_t kSeed = 20261128;
  RecordProperty("seed", std::to_string(kSeed));
  base::Rng rng(kSeed);
  const std::string client = kIntroduction + Call(1) + Call(3) + Frame(kData, 0, 1, std::string(300, 'x')) + Cancel(1) +
                             Call(5) + Frame(kPing, 0, 0, "12345678");
  const std::string server =
      Frame(kSettings, 0, 0) + Frame(kData, 0, 3, std::string(50, 'y')) + Answer(3) + Frame(kReset, 0, 5, Number(2));
  for (int round = 0; round < 200; ++round) {
    CallBudget budget(options_);
    CallMeter meter(limits_, budget, now_);
    std::string waiting;
    for (size_t at = 0; at < client.size();) {
      const size_t size = std::min<size_t>(1 + rng.Below(40), client.size() - at);
      waiting += client.substr(at, size);
      at += size;
      const auto progress = meter.FromClient(waiting, now_);
      ASSERT_EQ(progress.verdict, Verdict::kPass);
      waiting.erase(0, progress.passed);
    }
    EXPECT_EQ(waiting, "");
    EXPECT_EQ(meter.open(), 2);
    for (size_t at = 0; at < server.size();) {
      const size_t size = std::min<size_t>(1 + rng.Below(20), server.size() - at);
      meter.FromServer(server.substr(at, size), now_);
      at += size;
    }
    EXPECT_EQ(meter.open(), 0);
    EXPECT_EQ(budget.calls(now_), 2);  // cancelled by the client, refused by the server
  }
}

// Whatever clients do, the calls stay within the budget and what every connection may have besides.
TEST_F(CallMeterTest, AnyClientsStayWithinTheBudget) {
  constexpr uint64_t kSeed = 44;
  RecordProperty("seed", std::to_string(kSeed));
  base::Rng rng(kSeed);
  struct Client {
    std::unique_ptr<CallMeter> meter;
    uint32_t stream = 1;
    std::vector<uint32_t> open;
  };
  std::vector<Client> clients(8);
  for (int step = 0; step < 20'000; ++step) {
    Client& client = clients[rng.Below(clients.size())];
    if (client.meter == nullptr) {
      if (!budget_.HasRoom(now_)) {
        Wait(base::milliseconds(20));
        continue;
      }
      client = {Introduced(), 1, {}};
    }
    const uint64_t choice = rng.Below(20);
    if (choice < 10) {
      if (client.meter->FromClient(Call(client.stream), now_).verdict == Verdict::kPass) {
        client.open.push_back(client.stream);
        client.stream += 2;
      }
    } else if (choice < 19 && !client.open.empty()) {
      const uint32_t stream = client.open.back();
      client.open.pop_back();
      if (choice < 15) {
        client.meter->FromClient(Cancel(stream), now_);
      } else {
        client.meter->FromServer(choice < 17 ? Answer(stream) : Frame(kReset, 0, stream, Number(1)), now_);
      }
    } else if (choice == 19) {
      client.meter.reset();
    }
    Wait(base::milliseconds(1));
    ASSERT_LE(budget_.calls(now_), options_.max_calls + std::ssize(clients) * options_.own_calls);
  }
}

}  // namespace
}  // namespace medley::http2_front
