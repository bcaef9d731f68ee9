#include "kube/cache/store.h"

#include <thread>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/kube/cache/testing.h"

namespace medley::kube {
namespace {

std::vector<std::string> ByApp(const Object& object) {
  const std::string app = object.label("app");
  return app.empty() ? std::vector<std::string>() : std::vector<std::string>{app};
}

ObjectPtr Labelled(const std::string& name, const std::string& version, const std::string& app) {
  Object pod = Pod(name, version);
  pod.SetLabel("app", app);
  return std::make_shared<const Object>(std::move(pod));
}

// Runs with unpacked and with packed objects.
class StoreTest : public testing::TestWithParam<bool> {
 protected:
  Store store_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Kept, StoreTest, testing::Bool(),
                         [](const auto& packed) { return packed.param ? "Packed" : "Whole"; });

TEST_P(StoreTest, C10_KeysAndIndicesAddedWhileRunning) {
  Store& store = store_;
  EXPECT_EQ(store.Put(Labelled("a", "1", "x")), nullptr);
  ASSERT_THAT(store.AddIndex("app", ByApp), base::IsOk());
  EXPECT_THAT(store.AddIndex("app", ByApp), base::StatusIs(absl::StatusCode::kAlreadyExists));
  store.Put(Labelled("b", "2", "x"));
  EXPECT_EQ(store.ByIndex("app", "x").size(), 2u);
  const ObjectPtr before = store.Put(Labelled("a", "3", "y"));
  EXPECT_EQ(before->resource_version(), "1");
  EXPECT_EQ(store.ByIndex("app", "x").size(), 1u);
  EXPECT_EQ(store.ByIndex("app", "y").size(), 1u);
  EXPECT_NE(store.Erase({"ns", "a"}), nullptr);
  EXPECT_EQ(store.Erase({"ns", "a"}), nullptr);
  EXPECT_TRUE(store.ByIndex("app", "y").empty());
  EXPECT_TRUE(store.ByIndex("none", "y").empty());
  EXPECT_EQ((Key{"", "n"}).ToString(), "n");
  EXPECT_EQ(store.Keys(), std::vector<Key>({{"ns", "b"}}));
}

TEST_P(StoreTest, GivesBackWhatWasPut) {
  Object pod = Pod("a", "1");
  pod.mutable_json()["spec"] = Json::parse(
      R"({"n": -1, "big": 9007199254740993, "half": 0.5, "third": 0.3333333333333333, "none": null,
          "text": "\u00e4\u0000b", "list": [true, [], {}, 1e300]})");
  store_.Put(std::make_shared<const Object>(pod));
  const ObjectPtr got = store_.Get({"ns", "a"});
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->json(), pod.json());
  EXPECT_EQ(got->json().dump(), pod.json().dump());
  EXPECT_EQ(store_.UidOf({"ns", "a"}), pod.uid());
  EXPECT_EQ(store_.UidOf({"ns", "b"}), "");
  EXPECT_EQ(store_.Erase({"ns", "a"})->json(), pod.json());
  EXPECT_EQ(store_.UidOf({"ns", "a"}), "");
}

TEST_P(StoreTest, ListsByNamespace) {
  Store& store = store_;
  for (const char* ns : {"a", "ab", "b"}) store.Put(std::make_shared<const Object>(Pod("p", "1", ns)));
  EXPECT_EQ(store.List().size(), 3u);
  ASSERT_EQ(store.List("a").size(), 1u);
  EXPECT_EQ(store.List("a")[0]->key().ns, "a");
  EXPECT_EQ(store.List("c").size(), 0u);
}

TEST_P(StoreTest, C2_ReplaceReportsVanishedAndPutObjectsInListOrder) {
  Store& store = store_;
  store.Put(PodPtr("a", "1"));
  store.Put(PodPtr("b", "2"));
  const auto replaced = store.Replace({PodPtr("c", "3"), PodPtr("b", "4")}, "9");
  ASSERT_EQ(replaced.vanished.size(), 1u);
  EXPECT_EQ(replaced.vanished[0]->key().name, "a");
  ASSERT_EQ(replaced.put.size(), 2u);
  EXPECT_EQ(replaced.put[0].first, nullptr);
  EXPECT_EQ(replaced.put[1].first->resource_version(), "2");
  EXPECT_EQ(store.resource_version(), "9");
}

TEST(EventFifoTest, TestRealFIFO_InOrderNothingMerged) {
  EventFifo fifo;
  for (const char* version : {"1", "2", "3"}) {
    ASSERT_TRUE(fifo.Push({.type = FifoEvent::Type::kUpdated, .object = PodPtr("a", version)}, {}));
  }
  const auto batch = fifo.Pop({});
  ASSERT_EQ(batch.size(), 3u);
  EXPECT_EQ(batch[2].object->resource_version(), "3");
}

TEST(EventFifoTest, C1_AtMost1000KeysABatch) {
  EventFifo fifo;
  for (int i = 0; i < 1500; ++i) {
    ASSERT_TRUE(fifo.Push({.object = PodPtr(std::to_string(i), "1")}, {}));
  }
  EXPECT_EQ(fifo.Pop({}).size(), 1000u);
  EXPECT_EQ(fifo.Pop({}).size(), 500u);
}

TEST(EventFifoTest, TestRealFIFO_ReplaceAtomic) {
  EventFifo fifo;
  ASSERT_TRUE(fifo.Push({.object = PodPtr("a", "1")}, {}));
  ASSERT_TRUE(fifo.Push({.type = FifoEvent::Type::kReplaced, .objects = {PodPtr("b", "2")}}, {}));
  ASSERT_TRUE(fifo.Push({.object = PodPtr("c", "3")}, {}));
  EXPECT_EQ(fifo.Pop({}).size(), 1u);
  const auto replaced = fifo.Pop({});
  ASSERT_EQ(replaced.size(), 1u);
  EXPECT_EQ(replaced[0].type, FifoEvent::Type::kReplaced);
  EXPECT_FALSE(fifo.HasSynced());  // C9: popped is not processed
  fifo.Processed(replaced);
  EXPECT_TRUE(fifo.HasSynced());
}

// As in client-go: known objects that the list lacks are first reported as deleted; the list has synced when all of it
// has been processed.
TEST(EventFifoTest, TestRealFIFO_HasSyncedCorrectOnDeletion) {
  Store store;
  for (const char* name : {"foo", "bar", "baz"}) store.Put(PodPtr(name, "5"));
  EventFifo fifo;
  ASSERT_TRUE(
      fifo.Push({.type = FifoEvent::Type::kReplaced, .objects = {PodPtr("foo", "5")}, .resource_version = "9"}, {}));
  EXPECT_FALSE(fifo.HasSynced());
  const auto batch = fifo.Pop({});
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_FALSE(fifo.HasSynced());
  const auto replaced = store.Replace(batch[0].objects, batch[0].resource_version);
  ASSERT_EQ(replaced.vanished.size(), 2u);
  EXPECT_EQ(replaced.vanished[0]->key().name, "bar");
  EXPECT_EQ(replaced.vanished[1]->key().name, "baz");
  ASSERT_EQ(replaced.put.size(), 1u);
  EXPECT_FALSE(fifo.HasSynced());  // C9
  fifo.Processed(batch);
  EXPECT_TRUE(fifo.HasSynced());
}

TEST(EventFifoTest, TestRealFIFO_PopShouldUnblockWhenClosed) {
  EventFifo fifo;
  std::jthread consumer([&] { EXPECT_TRUE(fifo.Pop({}).empty()); });
  fifo.Close();
}

TEST(EventFifoTest, C1_CloseWakesPopAndAFullQueueHoldsTheProducer) {
  EventFifo fifo(1);
  std::jthread consumer([&] {
    size_t seen = 0;
    while (true) {
      const auto batch = fifo.Pop({});
      if (batch.empty()) break;
      seen += batch.size();
    }
    EXPECT_EQ(seen, 3u);
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(fifo.Push({.object = PodPtr("a", "1")}, {}));
  fifo.Close();
  EXPECT_FALSE(fifo.Push({.object = PodPtr("a", "1")}, {}));
}

}  // namespace
}  // namespace medley::kube
