#include "cli/run/profile_cache.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "cli/run/kept_profiles.h"
#include "common/base/file.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::cli {
namespace {

using base::IsOk;

constexpr char kProfile[] =
    R"({"id": "p", "model": {"layers": [{"name": "fc", "kind": "OTHER", "profiles": [{"resourceType": "cpu", "computeSeconds": 1}]}]}})";

class ProfileCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("profile-cache");
    std::ofstream(folder_ / "train.csv") << "1,2\n";
    std::ofstream(folder_ / "worker") << "program";
  }
  void TearDown() override { base::RemoveTempDir(folder_); }
  kube::Object Job(const std::string& patch = "{}") const {
    kube::Json json = kube::Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
        "metadata": {"name": "click", "namespace": "default", "uid": "u-1"}, "spec": {
          "model": {"name": "logistic"},
          "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
                   "schema": {"label": {"column": 1, "positive": "2"}, "categorical": [0]},
                   "volume": {"hostPath": {"path": "HOST"}, "mountPath": "/data"}},
          "training": {"epochs": 1, "batchSize": 512}, "objective": {"maxUsdPerHour": "2"}}})");
    json["spec"]["data"]["volume"]["hostPath"]["path"] = folder_.string();
    json.merge_patch(kube::Json::parse(patch));
    return kube::Object(json);
  }
  static kube::Object Pool(const std::string& patch = "{}") {
    kube::Json json = kube::Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
        "metadata": {"name": "cpu"}, "spec": {"class": "CPU", "limit": 2, "price": {"usdPerUnitHour": "1"},
          "unit": {"resources": {"cpu": 1, "memory": "1Gi"}}}})");
    json.merge_patch(kube::Json::parse(patch));
    return kube::Object(json);
  }
  std::string Key(const kube::Object& job, const kube::Object& pool, const std::string& processor = "X") const {
    return ProfileKey(job, pool, processor, folder_ / "worker");
  }
  static kube::Object Measured() {
    kube::Object map(kube::resources::ConfigMaps(), {"default", "m"});
    map.mutable_json()["data"] = {{"profile.json", kProfile}};
    return map;
  }
  base::FakeClock clock_;
  std::filesystem::path folder_;
};

TEST_F(ProfileCacheTest, AKeyChangesWithWhatAMeasurementDependsOn) {
  const std::string key = Key(Job(), Pool());
  ASSERT_FALSE(key.empty());
  // What costs and what is wanted do not count.
  EXPECT_EQ(Key(Job(R"({"spec": {"objective": {"maxUsdPerHour": "3"}, "training": {"epochs": 9}}})"), Pool()), key);
  EXPECT_EQ(Key(Job(), Pool(R"({"spec": {"limit": 4, "price": {"usdPerUnitHour": "3"}}})")), key);
  std::set<std::string> keys = {key,
                                Key(Job(R"({"spec": {"training": {"batchSize": 256}}})"), Pool()),
                                Key(Job(R"({"spec": {"data": {"schema": {"missing": ["x"]}}}})"), Pool()),
                                Key(Job(), Pool(R"({"spec": {"unit": {"resources": {"cpu": 2}}}})")),
                                Key(Job(), Pool(R"({"metadata": {"annotations": {"run.medley.dev/cpu": "1"}}})")),
                                Key(Job(), Pool(R"({"metadata": {"name": "other"}})")),
                                Key(Job(), Pool(), "Y"),
                                Key(Job(R"({"spec": {"podTemplate": {"spec": {"nodeName": "a"}}}})"), Pool())};
  EXPECT_EQ(keys.size(), 8U);
  std::ofstream(folder_ / "train.csv") << "1,2\n3,4\n";
  EXPECT_TRUE(keys.insert(Key(Job(), Pool())).second) << "other data";
  std::ofstream(folder_ / "worker") << "another program";
  EXPECT_TRUE(keys.insert(Key(Job(), Pool())).second) << "another program";
  std::ofstream(folder_ / "worker-torch") << "the program for models from PyTorch";
  EXPECT_TRUE(keys.insert(Key(Job(), Pool())).second) << "another program for models from PyTorch";
  EXPECT_EQ(Key(Job(R"({"spec": {"model": {"name": "no such model"}}})"), Pool()), "");
}

TEST_F(ProfileCacheTest, KeepsAProfileForAMonth) {
  const ProfileCache cache(folder_ / "cache", clock_);
  EXPECT_FALSE(cache.Find("k", Job(), "cpu"));
  ASSERT_THAT(cache.Keep("k", Measured()), IsOk());
  const auto kept = cache.Find("k", Job(), "cpu");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->config_map.String("/data/profile.json"), kProfile);
  EXPECT_EQ(kept->config_map.label("medley.dev/pool"), "cpu");
  EXPECT_EQ(kept->config_map.key().ns, "default");
  EXPECT_FALSE(cache.Find("k", Job(), "gpu")) << "it has no numbers of that pool";
  EXPECT_FALSE(cache.Find("other", Job(), "cpu"));
  EXPECT_EQ(std::filesystem::status(folder_ / "cache").permissions(), std::filesystem::perms::owner_all);
  clock_.Advance(kProfileAge + base::seconds(1));
  EXPECT_FALSE(cache.Find("k", Job(), "cpu")) << "too old";
  ASSERT_THAT(cache.Keep("k", Measured()), IsOk());
  EXPECT_TRUE(cache.Find("k", Job(), "cpu"));
}

TEST_F(ProfileCacheTest, DamagedFilesAreMeasuredAgain) {
  const ProfileCache cache(folder_ / "cache", clock_);
  for (const std::string& text : {std::string(), std::string("{"), std::string("[]"), std::string(R"({"profile": 3})"),
                                  std::string(R"({"profile": "{}", "measured": "2026-01-01T00:00:00Z"})"),
                                  std::string(R"({"profile": "{}", "measured": "tomorrow"})")}) {
    std::filesystem::create_directories(folder_ / "cache");
    ASSERT_THAT(base::WriteFileAtomic(folder_ / "cache/k.json", text), IsOk());
    EXPECT_FALSE(cache.Find("k", Job(), "cpu")) << text;
    ASSERT_THAT(cache.Keep("k", Measured()), IsOk());
    EXPECT_TRUE(cache.Find("k", Job(), "cpu"));
  }
}

TEST_F(ProfileCacheTest, TheLeastRecentlyUsedAreRemoved) {
  const ProfileCache cache(folder_ / "cache", clock_);
  std::filesystem::create_directories(folder_ / "cache");
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (size_t i = 0; i < kMostProfiles; ++i) {
    const auto file = folder_ / "cache" / (std::to_string(i) + ".json");
    std::ofstream(file) << "{}";
    std::filesystem::last_write_time(file, old - std::chrono::seconds(i));
  }
  ASSERT_THAT(cache.Keep("new", Measured()), IsOk());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cache" / (std::to_string(kMostProfiles - 1) + ".json")));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "cache/0.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "cache/new.json"));
}

TEST_F(ProfileCacheTest, AFolderThatCannotBeWrittenIsAnError) {
  const ProfileCache cache("/proc/no-such-folder", clock_);
  EXPECT_FALSE(cache.Keep("k", Measured()).ok());
  EXPECT_FALSE(cache.Find("k", Job(), "cpu"));
}

TEST(CacheFolderTest, FollowsTheEnvironment) {
  using Path = std::filesystem::path;
  const auto of = [](const char* (*variable)(const char*)) { return CacheFolder(variable); };
  EXPECT_EQ(of([](const char*) -> const char* { return nullptr; }), std::nullopt);
  EXPECT_EQ(of([](const char* name) { return std::string_view(name) == "HOME" ? "/home/a" : nullptr; }),
            Path("/home/a/.cache/medley"));
  EXPECT_EQ(of([](const char* name) { return std::string_view(name) == "MEDLEY_CACHE" ? nullptr : "/c"; }),
            Path("/c/medley"));
  EXPECT_EQ(of([](const char* name) { return std::string_view(name) == "MEDLEY_CACHE" ? "/m" : "/c"; }), Path("/m"));
  EXPECT_EQ(of([](const char* name) { return std::string_view(name) == "MEDLEY_CACHE" ? "off" : "/c"; }), std::nullopt);
}

TEST_F(ProfileCacheTest, ARunStartsWithTheKeptProfilesAndTheirKey) {
  setenv("MEDLEY_CACHE", (folder_ / "cache").c_str(), 1);
  Manifests manifests;
  manifests.job = Job();
  manifests.pools = {Pool()};
  KeptProfiles nothing(clock_, manifests, folder_ / "worker", false);
  EXPECT_TRUE(nothing.TakeObjects().empty());
  ASSERT_THAT(ProfileCache(folder_ / "cache/profiles", clock_).Keep(Key(Job(), Pool(), ProcessorText()), Measured()),
              IsOk());
  KeptProfiles kept(clock_, manifests, folder_ / "worker", false);
  const std::vector<kube::Object> objects = kept.TakeObjects();
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[0].kind(), "Secret");
  EXPECT_NE(objects[1].annotation("medley.dev/signature"), "");
  EXPECT_EQ(kept.remarks().size(), 1U);
  KeptProfiles again(clock_, manifests, folder_ / "worker", true);
  EXPECT_TRUE(again.TakeObjects().empty());
  setenv("MEDLEY_CACHE", "off", 1);
}

}  // namespace
}  // namespace medley::cli
