// N writers, random cuts of the watch, one informer: at rest the store is the server's state, the versions
// of a key that a handler sees never go back, and no deletion is lost. Against a real API server when
// MEDLEY_TEST_KUBECONFIG is set (then without cuts).
#include <iostream>
#include <thread>

#include "common/base/testing/status_matchers.h"
#include "common/kube/cache/informer.h"
#include "common/kube/client/http_client.h"
#include "common/kube/embedded/api_server.h"
#include "common/kube/embedded/faults.h"
#include "common/kube/resource_version.h"

namespace medley::kube {
namespace {

using base::IsOk;
using embedded::Fault;

constexpr int kWriters = 4;
constexpr int kWrites = 150;
constexpr int kNames = 12;
constexpr uint64_t kSeed = 20261121;

// What one handler believes; checks each step.
class Witness {
 public:
  EventHandler Handler() {
    return {.on_add = [this](const ObjectPtr& o, bool) { See(*o); },
            .on_update = [this](const ObjectPtr&, const ObjectPtr& o) { See(*o); },
            .on_delete = [this](const ObjectPtr& o, bool) {
              base::MutexLock lock(mutex_);
              if (live_.erase(o->key()) == 0) ++wrong_;
            }};
  }
  std::map<Key, std::string> live() {
    base::MutexLock lock(mutex_);
    return live_;
  }
  int wrong() {
    base::MutexLock lock(mutex_);
    return wrong_;
  }

 private:
  void See(const Object& object) {
    base::MutexLock lock(mutex_);
    std::string& highest = highest_[object.key()];
    const std::string version = object.resource_version();
    if (!highest.empty() && CompareResourceVersion(version, highest) == std::strong_ordering::less) ++wrong_;
    highest = version;
    live_[object.key()] = version;
  }
  base::Mutex mutex_;
  std::map<Key, std::string> highest_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, std::string> live_ ABSL_GUARDED_BY(mutex_);
  int wrong_ ABSL_GUARDED_BY(mutex_) = 0;
};

class HammerTest : public testing::Test {
 protected:
  void SetUp() override {
    ClientConfig config;
    if (const auto path = ProcessEnvironment()("MEDLEY_TEST_KUBECONFIG")) {
      auto loaded = LoadKubeconfig(*path);
      ASSERT_THAT(loaded, IsOk());
      config = *std::move(loaded);
    } else {
      server_ = std::make_unique<ApiServer>(clock_, ApiServerOptions{.event_window = 200});
      ASSERT_THAT(server_->Start(), IsOk());
      config.server = server_->url();
    }
    client_ = std::make_unique<HttpClient>(std::move(config), clock_, kSeed);
    std::cerr << "seed " << kSeed << "\n";
  }
  void TearDown() override {
    for (const auto& [key, version] : Listed()) EXPECT_THAT(client_->Delete(maps_, key), IsOk());
  }
  std::map<Key, std::string> Listed() {
    std::map<Key, std::string> out;
    const auto list = client_->List(maps_, {.ns = "default", .label_selector = "hammer=1"});
    EXPECT_THAT(list, IsOk());
    if (!list.ok()) return out;
    for (const Object& object : list->items) out[object.key()] = object.resource_version();
    return out;
  }
  void Write(uint64_t seed) {
    base::Rng rng(seed);
    for (int i = 0; i < kWrites; ++i) {
      const Key key{"default", "hammer-" + std::to_string(rng.Below(kNames))};
      absl::Status status;
      switch (rng.Below(3)) {
        case 0: {
          Object map(maps_, key);
          map.SetLabel("hammer", "1");
          status = client_->Create(maps_, map).status();
          break;
        }
        case 1:
          status = client_->Patch(maps_, key, PatchType::kMerge, {{"data", {{"v", std::to_string(rng.Next())}}}})
                       .status();
          break;
        default: status = client_->Delete(maps_, key); break;
      }
      if (!status.ok() && !absl::IsNotFound(status) && !absl::IsAlreadyExists(status)) {
        ADD_FAILURE() << base::ToString(status);
      }
    }
  }
  void Cut(uint64_t seed, std::stop_token stop) {
    base::Rng rng(seed);
    constexpr Fault::Kind kKinds[] = {Fault::Kind::kWatchCut, Fault::Kind::kHalfLine,
                                      Fault::Kind::kWatchClose, Fault::Kind::kWatchGone};
    while (!stop.stop_requested()) {
      if (server_->faults().left() == 0) {
        server_->faults().Add({.kind = kKinds[rng.Below(4)], .verb = "watch",
                               .events = 1 + static_cast<int>(rng.Below(20))});
      }
      clock_.SleepFor(base::milliseconds(10), stop);
    }
    server_->faults().Clear();
  }

  const Resource maps_ = resources::ConfigMaps();
  base::SystemClock clock_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<HttpClient> client_;
};

TEST_F(HammerTest, AtRestTheStoreIsTheServer) {
  Witness witness;
  Informer::Options options;
  options.reflector.resource = maps_;
  options.reflector.ns = "default";
  options.reflector.label_selector = "hammer=1";
  options.reflector.seed = kSeed;
  Informer informer(*client_, clock_, std::move(options));
  ASSERT_THAT(informer.AddHandler(witness.Handler()), IsOk());
  // A fault is taken when a watch opens: the first one must find its fault there, or a fast run would see none.
  if (server_) server_->faults().Add({.kind = Fault::Kind::kWatchCut, .verb = "watch", .events = 5});
  informer.Start();
  {
    std::jthread cutter;
    if (server_) cutter = std::jthread([this](std::stop_token stop) { Cut(kSeed, stop); });
    std::vector<std::jthread> writers;
    for (int i = 0; i < kWriters; ++i) {
      writers.emplace_back([this, i] { Write(kSeed + 1 + static_cast<uint64_t>(i)); });
    }
  }
  const std::map<Key, std::string> truth = Listed();
  const auto stored = [&] {
    std::map<Key, std::string> out;
    for (const ObjectPtr& object : informer.store().List()) out[object->key()] = object->resource_version();
    return out;
  };
  // The reflector may wait up to a minute after several failures in a row.
  const auto deadline = clock_.Steady() + base::seconds(90);
  while ((stored() != truth || witness.live() != truth) && clock_.Steady() < deadline) {
    clock_.SleepFor(base::milliseconds(10), {});
  }
  EXPECT_EQ(stored(), truth);
  EXPECT_EQ(witness.live(), truth);
  EXPECT_EQ(witness.wrong(), 0);
  if (server_) {
    EXPECT_GT(server_->faults().taken(), 0u);
  }
  informer.Stop();
}

}  // namespace
}  // namespace medley::kube
