// Sections A and B of docs/design/kube-client.md. A test's name begins with its item, or is the name of client-go's
// test.
#include "kube/cache/reflector.h"

#include <gmock/gmock.h>

#include <thread>

#include "common/base/testing/fake_clock.h"
#include "tests/unit/kube/cache/testing.h"

namespace medley::kube {
namespace {

using base::milliseconds;
using base::seconds;
using Type = FifoEvent::Type;

// Longer than the first backoffs, shorter than the timeout of a watch-list.
constexpr base::nanoseconds kBackoff = seconds(10);

class ReflectorTest : public testing::Test {
 protected:
  ReflectorTest() {
    options_.resource = resources::Pods();
    options_.ns = "ns";
    options_.watch_list = false;
  }
  ~ReflectorTest() override {
    thread_.request_stop();
    client_.Close();
  }
  void Start(base::Clock& clock) {
    reflector_ = std::make_unique<Reflector>(client_, fifo_, clock, options_);
    thread_ = std::jthread([this](std::stop_token stop) { reflector_->Run(stop); });
  }
  void Start() { Start(clock_); }
  // Runs until the n-th watch opens. By then everything scripted before it has happened.
  void RunUntilWatch(size_t n) {
    Start();
    ASSERT_TRUE(client_.WaitForWatches(n));
  }
  std::vector<FifoEvent> Events() {
    std::vector<FifoEvent> all;
    while (fifo_.Size() > 0) {
      for (FifoEvent& event : fifo_.Pop({})) all.push_back(std::move(event));
    }
    return all;
  }
  // Makes a watch last long enough not to count as very short.
  std::function<void()> LongEnough() {
    return [this] { clock_.Advance(seconds(2)); };
  }

  FakeClient client_;
  EventFifo fifo_;
  InstantClock clock_;
  base::FakeClock fake_;  // for code that waits in real threads
  Reflector::Options options_;
  std::unique_ptr<Reflector> reflector_;
  std::jthread thread_;
};

TEST_F(ReflectorTest, A1_FirstListAtZeroThenAtTheLastVersion) {
  client_.ScriptList(PodList({Pod("a", "3")}, "10"));
  client_.ScriptWatch({.events = {Added("b", "12")}, .end = HttpError(500, "InternalError")});
  client_.ScriptList(PodList({}, "15"));
  RunUntilWatch(2);
  const auto lists = client_.lists();
  EXPECT_EQ(lists[0].resource_version, "0");
  EXPECT_EQ(lists[1].resource_version, "12");
  EXPECT_EQ(client_.watches()[1].resource_version, "15");
  EXPECT_EQ(reflector_->LastResourceVersion(), "15");
}

// As in client-go: the second page of a list has expired, so one full list follows, at the requested version.
TEST_F(ReflectorTest, TestReflectorFullListIfExpired) {
  options_.page_size = 4;
  client_.ScriptList(PodList({Pod("a", "1")}, "10"));
  client_.ScriptWatch({.end = HttpError(500, "InternalError")});
  client_.ScriptList(PodList({Pod("a", "1")}, "11", "C1"));
  client_.ScriptList(Gone());
  client_.ScriptList(PodList({Pod("a", "1"), Pod("b", "2")}, "11"));
  RunUntilWatch(2);
  const auto lists = client_.lists();
  ASSERT_EQ(lists.size(), 4u);
  EXPECT_EQ(lists[0].resource_version, "0");
  EXPECT_EQ(lists[1].resource_version, "10");
  EXPECT_EQ(lists[1].limit, 4);
  EXPECT_EQ(lists[2].resource_version, std::nullopt);
  EXPECT_EQ(lists[2].continue_token, "C1");
  EXPECT_EQ(lists[3].resource_version, "10");
  EXPECT_EQ(lists[3].limit, 0);
  EXPECT_EQ(Events()[1].objects.size(), 2u);
}

TEST_F(ReflectorTest, A2_AnExpiredListIsTriedAgainAtOnceWithoutAVersion) {
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({.end = HttpError(500, "InternalError")});
  client_.ScriptList(Gone());  // retried at once with "", in the same round
  client_.ScriptList(PodList({}, "20"));
  client_.ScriptWatch({.end = HttpError(500, "InternalError")});
  client_.ScriptList(PodList({}, "21"));
  RunUntilWatch(3);
  const auto lists = client_.lists();
  ASSERT_EQ(lists.size(), 4u);
  EXPECT_EQ(lists[1].resource_version, "10");
  EXPECT_EQ(lists[2].resource_version, std::nullopt);
  EXPECT_EQ(lists[3].resource_version, "20");  // success cleared the mark
  EXPECT_EQ(clock_.sleeps().size(), 2u);       // none between the two attempts
}

// As in client-go, for each form of the error that servers send.
TEST_F(ReflectorTest, TestReflectorFullListIfTooLarge) {
  Json modern = StatusJson(504, "Timeout", "Too large resource version");
  modern["details"]["causes"] = {{{"reason", "ResourceVersionTooLarge"}, {"message", "Too large resource version"}}};
  client_.ScriptList(ErrorFromHttp(504, modern.dump(), "test"));
  client_.ScriptList(PodList({}, "20"));
  client_.ScriptWatch({.end = HttpError(500, "InternalError")});
  client_.ScriptList(HttpError(504, "Timeout", "Too large resource version: 1000, current: 20"));
  client_.ScriptList(PodList({}, "30"));
  RunUntilWatch(2);
  const auto lists = client_.lists();
  ASSERT_EQ(lists.size(), 4u);
  EXPECT_EQ(lists[0].resource_version, "0");
  EXPECT_EQ(lists[1].resource_version, std::nullopt);
  EXPECT_EQ(lists[2].resource_version, "20");
  EXPECT_EQ(lists[3].resource_version, std::nullopt);
  EXPECT_EQ(clock_.sleeps().size(), 1u);  // only after the 500
}

TEST_F(ReflectorTest, A2_TheMarkStaysUntilAListSucceeds) {
  client_.ScriptList(Gone());
  client_.ScriptList(HttpError(503, "ServiceUnavailable"));  // the list with "" fails too: back off
  client_.ScriptList(PodList({}, "20"));
  RunUntilWatch(1);
  EXPECT_EQ(client_.lists()[2].resource_version, std::nullopt);
  EXPECT_EQ(clock_.sleeps().size(), 1u);
}

TEST_F(ReflectorTest, A3_PagesOf500ButNoneForAnExactVersion) {
  client_.ScriptList(PodList({Pod("a", "1")}, "10"));
  client_.ScriptWatch({.end = HttpError(500, "InternalError")});
  client_.ScriptList(PodList({}, "20"));
  RunUntilWatch(2);
  EXPECT_EQ(client_.lists()[0].limit, 500);
  EXPECT_EQ(client_.lists()[1].limit, 0);
}

TEST_F(ReflectorTest, A3_AServerThatPagesAtZeroIsPagedFromThenOn) {
  client_.ScriptList(PodList({Pod("a", "1")}, "10", "next"));
  client_.ScriptList(PodList({Pod("b", "1")}, "10"));
  client_.ScriptWatch({.end = HttpError(500, "InternalError")});
  client_.ScriptList(PodList({}, "20"));
  RunUntilWatch(2);
  EXPECT_EQ(client_.lists()[1].continue_token, "next");
  EXPECT_EQ(client_.lists()[1].resource_version, std::nullopt);
  EXPECT_EQ(client_.lists()[2].limit, 500);
  EXPECT_EQ(Events()[0].objects.size(), 2u);
}

TEST_F(ReflectorTest, A3_AContinuationThatExpiresBecomesOneFullList) {
  client_.ScriptList(PodList({Pod("a", "1")}, "10", "next"));
  client_.ScriptList(Gone());
  client_.ScriptList(PodList({Pod("a", "1"), Pod("b", "1")}, "11"));
  RunUntilWatch(1);
  EXPECT_EQ(client_.lists()[2].limit, 0);
  EXPECT_EQ(client_.lists()[2].continue_token, "");
  EXPECT_EQ(Events()[0].objects.size(), 2u);
}

TEST_F(ReflectorTest, A4_WrongTypesAreRejectedNeverStored) {
  ObjectList wrong = PodList({Pod("a", "1")}, "10");
  wrong.items[0].mutable_json()["kind"] = "Table";
  client_.ScriptList(std::move(wrong));
  client_.ScriptList(PodList({Pod("b", "1")}, "11"));
  RunUntilWatch(1);
  const auto events = Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, Type::kReplaced);
  EXPECT_EQ(events[0].resource_version, "11");
  EXPECT_EQ(client_.lists()[1].resource_version, "0");
}

TEST_F(ReflectorTest, A5_WatchListBuffersUntilTheBookmarkAndKeepsTheStream) {
  options_.watch_list = true;
  client_.ScriptWatch({.events = {Added("a", "5"), Added("b", "6"), Deleted("b", "7"), Bookmark("8"),
                                  Bookmark("9", true), Added("c", "10")},
                       .hold = true});
  Start(fake_);
  while (reflector_->LastResourceVersion() != "10") std::this_thread::yield();
  const auto events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].type, Type::kReplaced);
  ASSERT_EQ(events[0].objects.size(), 1u);
  EXPECT_EQ(events[0].objects[0]->key().name, "a");
  EXPECT_EQ(events[0].resource_version, "9");
  EXPECT_EQ(events[1].type, Type::kAdded);
  EXPECT_TRUE(client_.lists().empty());
  const WatchOptions asked = client_.watches()[0];
  EXPECT_TRUE(asked.send_initial_events);
  EXPECT_TRUE(asked.allow_bookmarks);
  EXPECT_EQ(asked.resource_version, "");
}

TEST_F(ReflectorTest, A5_ServerWithoutWatchListIsListed) {
  options_.watch_list = true;
  client_.ScriptWatch({.end = HttpError(422, "Invalid")});
  client_.ScriptList(PodList({}, "10"));
  Start(fake_);
  ASSERT_TRUE(client_.WaitForWatches(2));
  EXPECT_EQ(client_.lists().size(), 1u);
  EXPECT_FALSE(client_.watches()[1].send_initial_events);
  EXPECT_EQ(client_.watches()[1].resource_version, "10");
}

TEST_F(ReflectorTest, A5_ServerThatIgnoresWatchListIsListedAfterATimeout) {
  options_.watch_list = true;
  client_.ScriptWatch({.events = {Added("a", "5")}, .hold = true});
  client_.ScriptList(PodList({}, "10"));
  Start(fake_);
  ASSERT_TRUE(fake_.WaitForSleepers(1));
  fake_.Advance(seconds(31));
  ASSERT_TRUE(client_.WaitForWatches(2));
  EXPECT_EQ(Events().size(), 1u);
}

TEST_F(ReflectorTest, A5_WatchListRetriesAfter410And429) {
  options_.watch_list = true;
  client_.ScriptWatch({.events = {Bookmark("9", true)}, .end = HttpError(500, "InternalError")});
  client_.ScriptWatch({.events = {ErrorEvent(410, "Expired")}});  // the next attempt starts at ""
  client_.ScriptWatch({.end = TooMany()});                        // backs off
  client_.ScriptWatch({.events = {Bookmark("20", true)}, .hold = true});
  Start(fake_);
  ASSERT_TRUE(fake_.WakeSleeper(kBackoff));  // before the next list
  ASSERT_TRUE(fake_.WakeSleeper(kBackoff));  // after the 429
  ASSERT_TRUE(client_.WaitForWatches(4));
  const auto watches = client_.watches();
  EXPECT_EQ(watches[1].resource_version, "9");
  EXPECT_EQ(watches[2].resource_version, "");
  EXPECT_EQ(watches[3].resource_version, "");
  EXPECT_TRUE(client_.lists().empty());
}

TEST_F(ReflectorTest, A5_AnyOtherErrorOfTheInitialEventsListsAndTriesWatchListNextTime) {
  options_.watch_list = true;
  client_.ScriptWatch({.events = {Added("a", "5")}, .end = StreamCut("test")});
  client_.ScriptList(PodList({Pod("a", "5")}, "10"));
  client_.ScriptWatch({.end = HttpError(403, "Forbidden")});
  client_.ScriptWatch({.events = {Bookmark("11", true)}, .hold = true});
  Start(fake_);
  ASSERT_TRUE(fake_.WakeSleeper(kBackoff));
  ASSERT_TRUE(client_.WaitForWatches(3));
  EXPECT_FALSE(client_.watches()[1].send_initial_events);
  EXPECT_TRUE(client_.watches()[2].send_initial_events);
  EXPECT_EQ(client_.watches()[2].resource_version, "10");
  EXPECT_EQ(client_.lists().size(), 1u);
}

TEST_F(ReflectorTest, A5_TheStreamAfterTheInitialEventsIsAWatchOfItsOwn) {
  options_.watch_list = true;
  client_.ScriptWatch({.events = {Added("a", "5"), Bookmark("9", true)}});  // ends with its bookmark: very short
  client_.ScriptWatch({.events = {Bookmark("10", true)}, .hold = true});
  Start(fake_);
  ASSERT_TRUE(fake_.WakeSleeper(kBackoff));
  ASSERT_TRUE(client_.WaitForWatches(2));
  EXPECT_TRUE(client_.watches()[1].send_initial_events);  // B2
  EXPECT_EQ(client_.watches()[1].resource_version, "9");
}

TEST_F(ReflectorTest, B1_WatchFromTheLastVersionWithBookmarksAndARandomTimeout) {
  client_.ScriptList(PodList({}, "10"));
  for (int i = 0; i < 20; ++i) client_.ScriptWatch({.before_end = LongEnough()});
  RunUntilWatch(21);
  std::set<int> timeouts;
  for (const WatchOptions& watch : client_.watches()) {
    EXPECT_EQ(watch.resource_version, "10");
    EXPECT_EQ(watch.ns, "ns");
    EXPECT_TRUE(watch.allow_bookmarks);
    EXPECT_GE(watch.timeout_seconds, 300);
    EXPECT_LT(watch.timeout_seconds, 600);
    timeouts.insert(watch.timeout_seconds);
  }
  EXPECT_GT(timeouts.size(), 5u);
}

TEST_F(ReflectorTest, B2_CleanEndOrCutWatchesAgainAtOnceWithoutARelist) {
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({.events = {Added("a", "11")}});
  client_.ScriptWatch({.events = {Added("b", "12")}, .end = StreamCut("test")});
  RunUntilWatch(3);
  EXPECT_EQ(client_.lists().size(), 1u);
  EXPECT_EQ(client_.watches()[1].resource_version, "11");
  EXPECT_EQ(client_.watches()[2].resource_version, "12");
  EXPECT_TRUE(clock_.sleeps().empty());
}

TEST_F(ReflectorTest, B2_AVeryShortWatchWithoutEventsRelists) {
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({});
  client_.ScriptList(PodList({}, "11"));
  RunUntilWatch(2);
  EXPECT_EQ(client_.lists().size(), 2u);
  EXPECT_EQ(clock_.sleeps().size(), 1u);
}

TEST_F(ReflectorTest, TestNoRelistOnTooManyRequests) {
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({.end = TooMany()});
  client_.ScriptWatch({.end = ConnectionRefused("test")});
  RunUntilWatch(3);
  EXPECT_EQ(client_.lists().size(), 1u);
  EXPECT_EQ(clock_.sleeps().size(), 2u);
}

TEST_F(ReflectorTest, B3_OtherErrorsOfOpeningRelist) {
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({.end = HttpError(403, "Forbidden")});
  client_.ScriptList(PodList({}, "11"));
  RunUntilWatch(2);
  EXPECT_EQ(client_.lists().size(), 2u);
}

TEST_F(ReflectorTest, B4_GoneListsFromTheLastVersionFirst) {
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({.events = {Added("a", "12"), ErrorEvent(410, "Expired")}});
  client_.ScriptList(PodList({}, "15"));
  RunUntilWatch(2);
  EXPECT_EQ(client_.lists()[1].resource_version, "12");
}

// As in client-go: 429 when the watch opens, then 429 as an event.
TEST_F(ReflectorTest, TestBackoffOnTooManyRequests) {
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({.end = TooMany()});
  client_.ScriptWatch({.events = {Added("a", "12"), ErrorEvent(429, "TooManyRequests")}});
  RunUntilWatch(3);
  EXPECT_EQ(client_.lists().size(), 1u);
  EXPECT_EQ(client_.watches()[1].resource_version, "10");
  EXPECT_EQ(client_.watches()[2].resource_version, "12");
  EXPECT_EQ(clock_.sleeps().size(), 2u);
}

TEST_F(ReflectorTest, TestRetryInternalError) {
  options_.internal_error_retry = seconds(100);
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({.events = {ErrorEvent(500, "InternalError")}});
  client_.ScriptWatch(
      {.events = {ErrorEvent(500, "InternalError")}, .before_end = [this] { clock_.Advance(seconds(1)); }});
  RunUntilWatch(3);
  EXPECT_EQ(client_.lists().size(), 1u);
}

TEST_F(ReflectorTest, B4_InternalErrorRelistsByDefault) {
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({.events = {ErrorEvent(500, "InternalError")}});
  client_.ScriptList(PodList({}, "11"));
  RunUntilWatch(2);
  EXPECT_EQ(client_.lists().size(), 2u);
}

TEST_F(ReflectorTest, TestReflectorReplacesStoreOnUnsafeDelete) {
  client_.ScriptList(PodList({Pod("a", "1"), Pod("b", "2")}, "10"));
  client_.ScriptWatch({.events = {ErrorEvent(500, "StoreReadError")}});
  client_.ScriptList(PodList({Pod("a", "1")}, "11"));
  RunUntilWatch(2);
  const auto events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].type, Type::kReplaced);
  EXPECT_EQ(events[1].objects.size(), 1u);
}

TEST_F(ReflectorTest, B5_EveryEventAdvancesTheVersionAlsoBookmarks) {
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({.events = {Modified("a", "11"), Deleted("a", "12"), Bookmark("20")}});
  RunUntilWatch(2);
  EXPECT_EQ(client_.watches()[1].resource_version, "20");
  const auto events = Events();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[3].type, Type::kBookmark);
  EXPECT_EQ(events[3].object, nullptr);
}

TEST_F(ReflectorTest, B5_SyntheticAddedOfAWatchFromZeroDoNotAdvance) {
  client_.ScriptList(PodList({}, "0"));
  client_.ScriptWatch({.events = {Added("a", "30"), Added("b", "20")}});
  client_.ScriptWatch({.events = {Added("a", "30"), Modified("b", "31"), Added("c", "32")}});
  RunUntilWatch(3);
  EXPECT_EQ(client_.watches()[1].resource_version, "0");
  EXPECT_EQ(client_.watches()[2].resource_version, "32");
}

TEST_F(ReflectorTest, B6_UnknownTypesAndWrongKindsAreSkipped) {
  WatchEvent unknown = Added("x", "11");
  unknown.type = WatchEvent::Type::kUnknown;
  WatchEvent wrong = Added("y", "12");
  wrong.object.mutable_json()["kind"] = "Node";
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({.events = {unknown, wrong, Added("a", "13")}});
  RunUntilWatch(2);
  EXPECT_EQ(Events().size(), 2u);
  EXPECT_EQ(client_.lists().size(), 1u);
}

TEST_F(ReflectorTest, B7_BackoffDoublesFrom800MsTo60SAndResets) {
  for (int i = 0; i < 9; ++i) client_.ScriptList(HttpError(503, "ServiceUnavailable"));
  client_.ScriptList(PodList({}, "10"));
  client_.ScriptWatch({.end = HttpError(403, "Forbidden"), .before_end = [this] { clock_.Advance(seconds(121)); }});
  client_.ScriptList(PodList({}, "11"));
  RunUntilWatch(2);
  const auto sleeps = clock_.sleeps();
  ASSERT_EQ(sleeps.size(), 10u);
  double first = 0.8;
  for (int i = 0; i < 9; ++i) {
    EXPECT_GE(base::ToSeconds(sleeps[static_cast<size_t>(i)]), first - 1e-6) << i;
    EXPECT_LE(base::ToSeconds(sleeps[static_cast<size_t>(i)]), 2 * first + 1e-6) << i;
    first = std::min(30.0, first * 2);
  }
  EXPECT_LE(base::ToSeconds(sleeps[9]), 1.6 + 1e-6);  // after two quiet minutes
}

TEST_F(ReflectorTest, B7_StopInterruptsAWait) {
  client_.ScriptList(HttpError(503, "ServiceUnavailable"));
  Start(fake_);
  ASSERT_TRUE(fake_.WaitForSleepers(1));
  thread_.request_stop();
  thread_.join();  // the clock never moved
}

}  // namespace
}  // namespace medley::kube
