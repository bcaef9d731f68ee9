// Section C of docs/design/kube-client.md.
#include "kube/cache/informer_factory.h"

#include <gmock/gmock.h>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "tests/unit/kube/cache/testing.h"

namespace medley::kube {
namespace {

using base::seconds;
using testing::ElementsAre;

// Records each call of a handler as a line of text.
class Recorder {
 public:
  EventHandler Handler() {
    return {.on_add = [this](const ObjectPtr& o, bool initial) { Write("add", *o, initial ? " initial" : ""); },
            .on_update = [this](const ObjectPtr& a,
                                const ObjectPtr& b) { Write("update", *b, " from " + a->resource_version()); },
            .on_delete = [this](const ObjectPtr& o, bool unknown) { Write("delete", *o, unknown ? " unknown" : ""); }};
  }
  std::vector<std::string> WaitFor(size_t n) {
    base::MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, {}, seconds(60), [&] { return lines_.size() >= n; });
    return lines_;
  }
  size_t size() {
    base::MutexLock lock(mutex_);
    return lines_.size();
  }

 private:
  void Write(const std::string& verb, const Object& o, const std::string& rest) {
    base::MutexLock lock(mutex_);
    lines_.push_back(verb + " " + o.key().name + " " + o.resource_version() + rest);
    changed_.NotifyAll();
  }
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

class InformerTest : public testing::Test {
 protected:
  InformerTest() {
    options_.reflector.resource = resources::Pods();
    options_.reflector.watch_list = false;
  }
  ~InformerTest() override {
    client_.Close();
    if (informer_) informer_->Stop();
  }
  Informer& Make() {
    informer_ = std::make_unique<Informer>(client_, clock_, options_);
    return *informer_;
  }

  FakeClient client_;
  base::FakeClock clock_;
  Informer::Options options_;
  std::unique_ptr<Informer> informer_;
};

TEST_F(InformerTest, C2_C4_EventsReachHandlersInOrder) {
  Recorder recorder;
  client_.ScriptList(PodList({Pod("a", "1"), Pod("b", "2")}, "10"));
  client_.ScriptWatch({.events = {Modified("a", "11"), Deleted("b", "12"), Added("b", "13"), Modified("c", "14"),
                                  Added("c", "15"), Bookmark("20")},
                       .hold = true});
  Informer& informer = Make();
  ASSERT_THAT(informer.AddHandler(recorder.Handler()), base::IsOk());
  informer.Start();
  ASSERT_THAT(informer.WaitForSync(seconds(60), {}), base::IsOk());
  EXPECT_THAT(recorder.WaitFor(7), ElementsAre("add a 1 initial", "add b 2 initial", "update a 11 from 1",
                                               "delete b 12", "add b 13", "add c 14", "update c 15 from 14"));
  while (informer.store().resource_version() != "20") std::this_thread::yield();  // F4: bookmarks
  EXPECT_EQ(recorder.size(), 7u);
}

TEST_F(InformerTest, TestSharedInformerWatchDisruption) {
  Recorder recorder;
  client_.ScriptList(PodList({Pod("a", "1"), Pod("b", "2"), Pod("c", "3")}, "10"));
  client_.ScriptWatch({.events = {ErrorEvent(410, "Expired")}});
  client_.ScriptList(PodList({Pod("b", "2"), Pod("c", "8"), Pod("d", "9")}, "15"));
  Informer& informer = Make();
  ASSERT_THAT(informer.AddHandler(recorder.Handler()), base::IsOk());
  informer.Start();
  recorder.WaitFor(3);
  while (client_.lists().size() < 2) {
    clock_.Advance(seconds(2));
    std::this_thread::yield();
  }
  // C6: "b" did not change, so no handler is called for it.
  EXPECT_THAT(recorder.WaitFor(6), ElementsAre("add a 1 initial", "add b 2 initial", "add c 3 initial",
                                               "delete a 1 unknown", "update c 8 from 3", "add d 9"));
}

TEST_F(InformerTest, C5_StoreChangesBeforeHandlersRun) {
  std::atomic<int> wrong = 0;
  Recorder recorder;
  client_.ScriptList(PodList({Pod("a", "1")}, "10"));
  client_.ScriptWatch({.events = {Added("b", "11"), Deleted("a", "12")}, .hold = true});
  Informer& informer = Make();
  EventHandler handler;
  handler.on_add = [&](const ObjectPtr& object, bool) {
    if (object->key().name == "b" && informer.store().Get(object->key()) == nullptr) ++wrong;
  };
  handler.on_delete = [&](const ObjectPtr& object, bool) {
    if (informer.store().Get(object->key()) != nullptr) ++wrong;
  };
  ASSERT_THAT(informer.AddHandler(handler), base::IsOk());
  ASSERT_THAT(informer.AddHandler(recorder.Handler()), base::IsOk());
  informer.Start();
  recorder.WaitFor(3);
  informer.Stop();
  EXPECT_EQ(wrong, 0);
}

TEST_F(InformerTest, C8_ALateHandlerGetsTheWholeStore) {
  Recorder recorder;
  client_.ScriptList(PodList({Pod("a", "1"), Pod("b", "2")}, "10"));
  Informer& informer = Make();
  informer.Start();
  ASSERT_THAT(informer.WaitForSync(seconds(60), {}), base::IsOk());
  const auto id = informer.AddHandler(recorder.Handler());
  ASSERT_THAT(id, base::IsOk());
  EXPECT_THAT(recorder.WaitFor(2), ElementsAre("add a 1 initial", "add b 2 initial"));
  while (!informer.HandlerSynced(*id)) std::this_thread::yield();
  informer.RemoveHandler(*id);
  informer.RemoveHandler(*id);  // C10: idempotent
  EXPECT_FALSE(informer.HandlerSynced(*id));
}

// As in client-go: a handler that is added to a running informer gets the present objects, then the later changes.
TEST_F(InformerTest, TestAddWhileActive) {
  Recorder first;
  Recorder second;
  std::atomic<bool> may_go = false;
  client_.ScriptList(PodList({Pod("pod1", "1")}, "10"));
  client_.ScriptWatch({.events = {Added("pod2", "11")}, .hold = true, .before_events = [&] {
                         while (!may_go) std::this_thread::yield();
                       }});
  Informer& informer = Make();
  const auto handle1 = informer.AddHandler(first.Handler());
  EXPECT_FALSE(informer.HandlerSynced(*handle1));
  informer.Start();
  EXPECT_THAT(first.WaitFor(1), ElementsAre("add pod1 1 initial"));
  while (!informer.HandlerSynced(*handle1)) std::this_thread::yield();

  std::atomic<bool> held = true;  // HandlerSynced is checked while the handler is still held
  EventHandler slow = second.Handler();
  slow.on_add = [&, on_add = slow.on_add](const ObjectPtr& object, bool initial) {
    while (held) std::this_thread::yield();
    on_add(object, initial);
  };
  const auto handle2 = informer.AddHandler(slow);
  EXPECT_FALSE(informer.HandlerSynced(*handle2));
  held = false;
  may_go = true;
  EXPECT_THAT(second.WaitFor(2), ElementsAre("add pod1 1 initial", "add pod2 11"));
  while (!informer.HandlerSynced(*handle2)) std::this_thread::yield();
  EXPECT_THAT(first.WaitFor(2), ElementsAre("add pod1 1 initial", "add pod2 11"));
}

TEST_F(InformerTest, C4_DeletedAndRecreatedMayComeAsOneUpdateOfTwoUids) {
  std::vector<std::string> uids;
  Recorder recorder;
  Object again = Pod("a", "14");
  again.mutable_json()["metadata"]["uid"] = "uid-of-the-next";
  client_.ScriptList(PodList({Pod("a", "1")}, "10"));
  client_.ScriptWatch({.events = {ErrorEvent(410, "Expired")}});
  client_.ScriptList(PodList({again}, "15"));
  Informer& informer = Make();
  EventHandler handler = recorder.Handler();
  handler.on_update = [&, record = handler.on_update](const ObjectPtr& before, const ObjectPtr& now) {
    uids = {before->uid(), now->uid()};
    record(before, now);
  };
  ASSERT_THAT(informer.AddHandler(handler), base::IsOk());
  informer.Start();
  while (client_.lists().size() < 2) {
    clock_.Advance(seconds(2));
    std::this_thread::yield();
  }
  EXPECT_THAT(recorder.WaitFor(2), ElementsAre("add a 1 initial", "update a 14 from 1"));
  EXPECT_THAT(uids, ElementsAre("uid-a", "uid-of-the-next"));
}

TEST_F(InformerTest, C6_AWriteThatChangedNothingReachesOnlyWhoseResyncIsDue) {
  Recorder never;
  Recorder resynced;
  client_.ScriptList(PodList({Pod("a", "1")}, "10"));
  client_.ScriptWatch({.events = {Modified("a", "1"), Added("b", "12")}, .hold = true});
  Informer& informer = Make();
  ASSERT_THAT(informer.AddHandler(never.Handler()), base::IsOk());
  ASSERT_THAT(informer.AddHandler(resynced.Handler(), seconds(2)), base::IsOk());
  informer.Start();
  EXPECT_THAT(never.WaitFor(2), ElementsAre("add a 1 initial", "add b 12"));
  EXPECT_THAT(resynced.WaitFor(2), ElementsAre("add a 1 initial", "add b 12"));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(seconds(2));
  EXPECT_THAT(resynced.WaitFor(4),
              ElementsAre("add a 1 initial", "add b 12", "update a 1 from 1", "update b 12 from 12"));
  EXPECT_EQ(never.size(), 2u);
}

TEST_F(InformerTest, C7_ResyncIsLocalAndAtLeastASecondApart) {
  Recorder recorder;
  client_.ScriptList(PodList({Pod("a", "1")}, "10"));
  Informer& informer = Make();
  ASSERT_THAT(informer.AddHandler(recorder.Handler(), base::milliseconds(1)), base::IsOk());
  informer.Start();
  recorder.WaitFor(1);
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(base::milliseconds(999));
  EXPECT_EQ(recorder.size(), 1u);
  clock_.Advance(base::milliseconds(1));
  EXPECT_EQ(recorder.WaitFor(2).size(), 2u);
  EXPECT_EQ(client_.lists().size(), 1u);
  EXPECT_LE(client_.watches().size(), 1u);
}

TEST(InformerDeathTest, C8_AnExceptionInAHandlerEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        FakeClient client;
        base::FakeClock clock;
        Informer::Options options;
        options.reflector.resource = resources::Pods();
        options.reflector.watch_list = false;
        client.ScriptList(PodList({Pod("a", "1")}, "10"));
        Informer informer(client, clock, options);
        EventHandler handler;
        handler.on_add = [](const ObjectPtr&, bool) { throw std::runtime_error("a handler must not"); };
        if (!informer.AddHandler(handler).ok()) return;
        informer.Start();
        base::SystemClock().SleepFor(seconds(30), {});
      },
      "a handler must not");
}

TEST_F(InformerTest, TestRealFIFO_HasSyncedCorrectOnEmptyList) {
  Recorder recorder;
  Informer& informer = Make();
  const auto id = informer.AddHandler(recorder.Handler());
  informer.Start();
  ASSERT_TRUE(client_.WaitForLists(1));
  EXPECT_FALSE(informer.HasSynced());
  EXPECT_FALSE(informer.HandlerSynced(*id));
  EXPECT_THAT(informer.WaitForSync(base::milliseconds(1), {}), base::StatusIs(absl::StatusCode::kDeadlineExceeded));
  client_.ScriptList(PodList({}, "10"));
  EXPECT_THAT(informer.WaitForSync(seconds(60), {}), base::IsOk());
  while (!informer.HandlerSynced(*id)) std::this_thread::yield();
}

TEST_F(InformerTest, TestListenerResyncPeriods) {
  Recorder never;
  Recorder two;
  Recorder three;
  client_.ScriptList(PodList({Pod("a", "1")}, "10"));
  Informer& informer = Make();
  ASSERT_THAT(informer.AddHandler(never.Handler()), base::IsOk());
  ASSERT_THAT(informer.AddHandler(two.Handler(), seconds(2)), base::IsOk());
  ASSERT_THAT(informer.AddHandler(three.Handler(), seconds(3)), base::IsOk());
  informer.Start();
  for (Recorder* recorder : {&never, &two, &three}) recorder->WaitFor(1);
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(seconds(2));
  EXPECT_THAT(two.WaitFor(2), ElementsAre("add a 1 initial", "update a 1 from 1"));
  EXPECT_EQ(three.size(), 1u);
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(seconds(1));
  EXPECT_THAT(three.WaitFor(2), ElementsAre("add a 1 initial", "update a 1 from 1"));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(seconds(1));
  EXPECT_EQ(two.WaitFor(3).size(), 3u);
  EXPECT_EQ(three.size(), 2u);
  EXPECT_EQ(never.size(), 1u);
}

TEST_F(InformerTest, C10_TransformRunsOnceBeforeStoring) {
  std::atomic<int> calls = 0;
  options_.reflector.transform = [&](Object& object) {
    ++calls;
    object.SetLabel("seen", "1");
  };
  client_.ScriptList(PodList({Pod("a", "1")}, "10"));
  Informer& informer = Make();
  informer.Start();
  ASSERT_THAT(informer.WaitForSync(seconds(60), {}), base::IsOk());
  EXPECT_EQ(informer.store().Get({"ns", "a"})->label("seen"), "1");
  EXPECT_EQ(calls, 1);
}

TEST_F(InformerTest, C10_NothingStartsAgainAfterStop) {
  Informer& informer = Make();
  informer.Start();
  client_.Close();
  informer.Stop();
  informer.Stop();
  const size_t lists = client_.lists().size();
  informer.Start();
  EXPECT_EQ(client_.lists().size(), lists);
  EXPECT_THAT(informer.AddHandler({}), base::StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(informer.WaitForSync(seconds(60), {}), base::StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(InformerTest, FactorySharesOneInformerForEachSelection) {
  InformerFactory factory(client_, clock_, 1);
  Informer& all = factory.For(resources::Pods());
  EXPECT_EQ(&all, &factory.For(resources::Pods()));
  EXPECT_NE(&all, &factory.For(resources::Pods(), "ns"));
  EXPECT_NE(&all, &factory.For(resources::Pods(), "", "a=b"));
  EXPECT_NE(&all, &factory.For(resources::Nodes()));
  factory.Start();
  EXPECT_FALSE(factory.HasSynced());
  client_.Close();
  factory.Stop();
}

}  // namespace
}  // namespace medley::kube
