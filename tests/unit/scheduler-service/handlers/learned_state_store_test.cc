#include "scheduler-service/handlers/learned_state_store.h"
#include "common/base/testing/temp_dir.h"
#include "common/model/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"

namespace medley::sched {
namespace {

class LearnedStateStoreTest : public testing::Test {
 protected:
  void TearDown() override { base::RemoveTempDir(folder_); }

  const std::filesystem::path folder_ = *base::MakeTempDir("medley-learned-test");
  metrics::Registry metrics_;
};

TEST_F(LearnedStateStoreTest, DamagedStateFilesAreIgnored) {
  const StateFiles files(folder_ / "deep" / "state", metrics_);
  ASSERT_THAT(files.Open(), base::IsOk());
  EXPECT_EQ(files.Load("x"), std::nullopt);
  const std::string bytes("a\n\0b", 4);
  files.Save("x", bytes);
  EXPECT_EQ(files.Load("x"), bytes);
  const auto path = folder_ / "deep" / "state" / "x";
  const std::string whole = *base::ReadFile(path);
  const std::string cut = whole.substr(0, whole.size() - 1);
  for (const std::string& damaged : {cut, whole + "x", std::string(), std::string("other")}) {
    ASSERT_THAT(base::WriteFileAtomic(path, damaged), base::IsOk());
    EXPECT_EQ(files.Load("x"), std::nullopt);
  }
  EXPECT_THAT(metrics_.Text(), testing::HasSubstr("medley_state_damaged_total{file=\"x\"} 4"));
}

TEST_F(LearnedStateStoreTest, WithoutAFolderNothingIsSaved) {
  const StateFiles files("", metrics_);
  EXPECT_THAT(files.Open(), base::IsOk());
  files.Save("x", "y");
  EXPECT_EQ(files.Load("x"), std::nullopt);
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "file", ""), base::IsOk());
  LearnedStateStore in_a_file(folder_ / "file", false, metrics_);
  EXPECT_FALSE(in_a_file.Open().ok());
}

TEST_F(LearnedStateStoreTest, PolicyFilesAreAddedChangedAndRemoved) {
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "a.policy", "one"), base::IsOk());
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "b.txt", "no policy"), base::IsOk());
  PolicyStore store(folder_);
  store.Scan();
  EXPECT_EQ(store.Names(), "a");
  ASSERT_NE(store.Find("a"), nullptr);
  EXPECT_EQ(*store.Find("a"), "one");
  EXPECT_EQ(store.Find("b"), nullptr);
  const uint64_t before = store.version();
  store.Scan();
  EXPECT_EQ(store.version(), before);
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "a.policy", "another"), base::IsOk());
  store.Scan();
  EXPECT_EQ(*store.Find("a"), "another");
  EXPECT_GT(store.version(), before);
  std::filesystem::remove(folder_ / "a.policy");
  store.Scan();
  EXPECT_EQ(store.Find("a"), nullptr);
  EXPECT_EQ(store.Names(), "none");
}

}  // namespace
}  // namespace medley::sched
