// Many writers, random faults and one informer (section H of docs/design/kube-client.md). When the writers rest, the
// informer's store equals the server's state. The versions of a key that a handler sees never decrease, and no deletion
// is lost.
//
// A round writes for a few seconds while faults happen, then rests and compares; one informer lives through all rounds.
// MEDLEY_HAMMER_SECONDS (default 3) is the duration. MEDLEY_HAMMER_SEED changes the random course; with an even seed
// the store is packed. The embedded server causes the faults itself; for a real server (MEDLEY_TEST_KUBECONFIG) the
// test causes them between the client and the informer.
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "common/base/testing/status_matchers.h"
#include "kube/cache/informer.h"
#include "kube/errors.h"
#include "localcluster/apiserver/faults.h"
#include "tests/integration/kube/hammer_parts.h"
#include "tests/integration/kube/test_server.h"

namespace medley::kube {
namespace {

using base::IsOk;
using base::milliseconds;
using base::seconds;
using localcluster::apiserver::Fault;

constexpr uint64_t kWriters = 4;
constexpr int kNames = 12;
constexpr int64_t kRoundSeconds = 5;

uint64_t Number(const char* variable, uint64_t otherwise) {
  const auto text = ProcessEnvironment()(variable);
  return text ? std::strtoull(text->c_str(), nullptr, 10) : otherwise;
}

class HammerTest : public testing::TestWithParam<ServerKind> {
 protected:
  HammerTest() : server_(GetParam(), clock_, {.event_window = 200}), ns_(server_.ns()) {
    std::cerr << "seed " << seed_ << ", " << seconds_ << " s\n";
    ClientConfig config = server_.config();
    config.request_timeout = std::chrono::hours(1);  // of the fast clock: 72 s
    client_ = std::make_unique<HttpClient>(std::move(config), fast_, seed_);
    faulty_ = std::make_unique<FaultyClient>(*client_, seed_);
  }
  void Write(uint64_t seed, std::stop_token stop) {
    base::Rng rng(seed);
    while (!stop.stop_requested()) {
      const absl::Status status = WriteOne(rng);
      ++writes_;
      // The last of these errors are caused by faults and the other writers.
      const bool fine = status.ok() || absl::IsNotFound(status) || absl::IsAlreadyExists(status) ||
                        absl::IsUnavailable(status) || IsConflict(status) || IsTooManyRequests(status);
      if (!fine) ADD_FAILURE() << base::ToString(status);
    }
  }
  absl::Status WriteOne(base::Rng& rng) {
    const Key key{ns_, "hammer-" + std::to_string(rng.Below(kNames))};
    const Json value = {{"data", {{"v", std::to_string(rng.Next())}}}};
    switch (rng.Below(4)) {
      case 0: {
        Object map(maps_, key);
        map.SetLabel("hammer", "1");
        return client_->Create(maps_, map).status();
      }
      case 1:
        return client_->Patch(maps_, key, PatchType::kMerge, value).status();
      case 2: {
        auto map = client_->Get(maps_, key);
        if (!map.ok()) return map.status();
        map->mutable_json().merge_patch(value);
        return client_->Update(maps_, *map).status();
      }
      default:
        return client_->Delete(maps_, key);
    }
  }
  // Adds a fault every few milliseconds. A few times a second the server stops listening: that ends even healthy
  // watches, and clears faults of requests that are not being made (of lists, while watches work).
  void Disturb(uint64_t seed, std::stop_token stop) {
    base::Rng rng(seed);
    while (!stop.stop_requested()) {
      if (server_.embedded()->faults().left() < 4) server_.embedded()->faults().Add(RandomFault(rng));
      if (rng.Below(20) == 0) {
        server_.embedded()->faults().Clear();
        EXPECT_THAT(server_.embedded()->SetListening(false), IsOk());
        clock_.SleepFor(milliseconds(20), stop);
        EXPECT_THAT(server_.embedded()->SetListening(true), IsOk());
      }
      clock_.SleepFor(milliseconds(10), stop);
    }
    server_.embedded()->faults().Clear();
  }
  std::map<Key, std::string> Listed() {
    std::map<Key, std::string> out;
    const auto list = client_->List(maps_, {.ns = ns_, .label_selector = "hammer=1"});
    EXPECT_THAT(list, IsOk());
    if (!list.ok()) return out;
    for (const Object& object : list->items) out[object.key()] = object.resource_version();
    return out;
  }
  void Round(uint64_t seed, base::nanoseconds time) {
    std::vector<std::jthread> threads;  // stopped and joined at the end of the round
    if (server_.real()) {
      faulty_->SetFaults(true);
    } else {
      threads.emplace_back([this, seed](std::stop_token stop) { Disturb(seed, stop); });
    }
    for (uint64_t i = 1; i <= kWriters; ++i) {
      threads.emplace_back([this, seed, i](std::stop_token stop) { Write(seed + i, stop); });
    }
    clock_.SleepFor(time, {});
    for (std::jthread& thread : threads) thread.request_stop();
    threads.clear();
    faulty_->SetFaults(false);
  }

  const uint64_t seed_ = Number("MEDLEY_HAMMER_SEED", 20261121);
  const int64_t seconds_ = static_cast<int64_t>(Number("MEDLEY_HAMMER_SECONDS", 3));
  const Resource maps_ = resources::ConfigMaps();
  base::SystemClock clock_;
  FastClock fast_;
  TestServer server_;
  const std::string ns_;
  std::unique_ptr<HttpClient> client_;
  std::unique_ptr<FaultyClient> faulty_;
  std::atomic<int64_t> writes_ = 0;
};
INSTANTIATE_TEST_SUITE_P(On, HammerTest, testing::ValuesIn(ServersUnderTest()), ServerName);

TEST_P(HammerTest, H_AtRestTheStoreEqualsTheServer) {
  Witness witness;
  Informer::Options options;
  options.reflector.resource = maps_;
  options.reflector.ns = ns_;
  options.reflector.label_selector = "hammer=1";
  options.reflector.seed = seed_;
  options.packed = seed_ % 2 == 0;
  Informer informer(*faulty_, fast_, std::move(options));
  ASSERT_THAT(informer.AddHandler(witness.Handler()), IsOk());
  informer.Start();
  const auto stored = [&] {
    std::map<Key, std::string> out;
    for (const ObjectPtr& object : informer.store().List()) out[object->key()] = object->resource_version();
    return out;
  };
  const base::SteadyTime end = clock_.Steady() + seconds(seconds_);
  int64_t rounds = 0;
  do {
    Round(base::Mix64(seed_ + static_cast<uint64_t>(rounds++)), seconds(std::min(seconds_, kRoundSeconds)));
    const std::map<Key, std::string> truth = Listed();
    // The reflector may be waiting for up to a minute of the fast clock.
    const bool same = server_.Eventually([&] { return stored() == truth && witness.live() == truth; }, seconds(60));
    EXPECT_TRUE(same) << "round " << rounds;
    if (!same) {
      EXPECT_EQ(stored(), truth);
      EXPECT_EQ(witness.live(), truth);
    }
    EXPECT_THAT(witness.wrong(), testing::IsEmpty()) << "round " << rounds;
  } while (clock_.Steady() < end && !HasFailure());
  informer.Stop();
  const size_t faults = server_.real() ? faulty_->faults() : server_.embedded()->faults().taken();
  std::cerr << rounds << " rounds, " << writes_ << " writes, " << faults << " faults, " << witness.events()
            << " events\n";
  EXPECT_GT(faults, 0u);
  EXPECT_GT(witness.events(), 0);
}

}  // namespace
}  // namespace medley::kube
