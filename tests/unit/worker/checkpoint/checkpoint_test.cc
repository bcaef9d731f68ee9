#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/store.h"
#include "worker/checkpoint/writer.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("medley-checkpoint"); }
  void TearDown() override { fs::remove_all(root_); }

  // Writes two dense operations in one file, and a table of 100 rows in two shards.
  CheckpointManifest Write(int64_t step, int64_t generation = 3) {
    CheckpointManifest manifest;
    manifest.job_uid = "uid";
    manifest.model_fingerprint = "print";
    manifest.generation = generation;
    manifest.step = step;
    manifest.rows = 1000;
    manifest.data_epochs = 2;
    manifest.batch_size = 10;
    manifest.folder = CheckpointFolder(step);
    auto dense = *CheckpointWriter::Create(root_, manifest.folder, DenseFileName(generation, 1));
    for (int32_t op : {1, 2}) {
      const std::vector<float> weights(50, static_cast<float>(op) + 0.5f);
      const std::vector<float> state(50, static_cast<float>(step));
      EXPECT_THAT(dense->AddDense(op, "weight", weights, state), IsOk());
      EXPECT_THAT(dense->AddDense(op, "bias", std::span(weights).first(5), {}), IsOk());
    }
    manifest.files.push_back(*dense->Finish());
    for (int shard = 0; shard < 2; ++shard) {
      auto rows = *CheckpointWriter::Create(root_, manifest.folder, RowsFileName(generation, shard));
      std::vector<uint64_t> keys;
      std::vector<float> values;
      for (uint64_t key = static_cast<uint64_t>(shard); key < 100; key += 2) {
        keys.push_back(key);
        for (int i = 0; i < 4; ++i) values.push_back(static_cast<float>(key) + static_cast<float>(i) / 4);
      }
      EXPECT_THAT(rows->AddRows(0, 4, keys, values), IsOk());
      manifest.files.push_back(*rows->Finish());
    }
    EXPECT_THAT(CompleteCheckpoint(root_, manifest), IsOk());
    return manifest;
  }

  // Reads the whole checkpoint, checks it against the values of Write and counts sections.
  absl::Status ReadAll(const CheckpointManifest& manifest, std::map<uint64_t, float>* rows, int* spans) {
    CheckpointHandlers handlers;
    handlers.dense = [&](int32_t op, std::string_view, std::span<const float> weights, std::span<const float>) {
      EXPECT_EQ(weights[0], static_cast<float>(op) + 0.5f);
      ++*spans;
      return absl::OkStatus();
    };
    handlers.rows = [&](int32_t, int32_t width, std::span<const uint64_t> keys, std::span<const float> values) {
      for (size_t i = 0; i < keys.size(); ++i) (*rows)[keys[i]] = values[i * static_cast<size_t>(width)];
      return absl::OkStatus();
    };
    return ReadCheckpoint(root_, manifest, std::move(handlers));
  }

  fs::path root_;
};

TEST_F(CheckpointTest, ReadsBackWhatWasWritten) {
  const CheckpointManifest written = Write(7);
  const auto found = FindCheckpoint(root_, "uid", "print");
  ASSERT_THAT(found, IsOk());
  ASSERT_TRUE(found->manifest);
  EXPECT_EQ(*found->manifest, written);
  EXPECT_TRUE(found->rejected.empty());
  std::map<uint64_t, float> rows;
  int spans = 0;
  ASSERT_THAT(ReadAll(*found->manifest, &rows, &spans), IsOk());
  EXPECT_EQ(spans, 4);
  EXPECT_EQ(rows.size(), 100u);
  for (const auto& [key, value] : rows) EXPECT_EQ(value, static_cast<float>(key));
}

// Under another plan, a stage reads only operation 2, and one of three shards reads only its keys.
TEST_F(CheckpointTest, RestoresOntoAnotherPlan) {
  const CheckpointManifest manifest = Write(7);
  std::vector<std::string> spans;
  size_t mine = 0;
  CheckpointHandlers handlers;
  handlers.wanted_dense = [](int32_t op) { return op == 2; };
  handlers.dense = [&](int32_t op, std::string_view name, std::span<const float> weights, std::span<const float>) {
    spans.push_back(fmt::format("{}/{}/{}", op, name, weights.size()));
    return absl::OkStatus();
  };
  handlers.rows = [&](int32_t, int32_t, std::span<const uint64_t> keys, std::span<const float>) {
    mine += static_cast<size_t>(std::count_if(keys.begin(), keys.end(), [](uint64_t k) { return k % 3 == 1; }));
    return absl::OkStatus();
  };
  ASSERT_THAT(ReadCheckpoint(root_, manifest, std::move(handlers)), IsOk());
  EXPECT_THAT(spans, ElementsAre("2/weight/50", "2/bias/5"));
  EXPECT_EQ(mine, 33u);
}

TEST_F(CheckpointTest, FallsBackToTheOneBeforeAndSaysWhy) {
  Write(7);
  Write(9);
  Write(12);
  const fs::path file = root_ / CheckpointFolder(12) / RowsFileName(3, 1);
  std::string bytes = *base::ReadFile(file);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_THAT(base::WriteFileAtomic(file, bytes), IsOk());
  fs::remove(root_ / CheckpointFolder(9) / "manifest.json");
  const auto found = FindCheckpoint(root_, "uid", "print");
  ASSERT_THAT(found, IsOk());
  ASSERT_TRUE(found->manifest);
  EXPECT_EQ(found->manifest->step, 7);
  ASSERT_EQ(found->rejected.size(), 2u);
  EXPECT_THAT(found->rejected[0].reason, HasSubstr("step-00000012: rows-e3-1.mck: crc32 is"));
  EXPECT_THAT(found->rejected[1].reason, HasSubstr("step-00000009: it has no manifest"));
}

TEST_F(CheckpointTest, IgnoresOtherJobsAndModels) {
  Write(7);
  EXPECT_FALSE(FindCheckpoint(root_, "other", "print")->manifest);
  EXPECT_FALSE(FindCheckpoint(root_, "uid", "other")->manifest);
  EXPECT_FALSE(FindCheckpoint(root_, "uid", "print", 6)->manifest);
  EXPECT_FALSE(FindCheckpoint(root_ / "absent", "uid", "print")->manifest);
}

TEST_F(CheckpointTest, AnUnfinishedFileLeavesNothing) {
  {
    auto writer = *CheckpointWriter::Create(root_, "step-00000001", "x.mck");
    const std::vector<float> weights(10, 1.0f);
    ASSERT_THAT(writer->AddDense(0, "w", weights, {}), IsOk());
  }
  EXPECT_TRUE(fs::is_empty(root_ / "step-00000001"));
  EXPECT_THAT(CheckpointWriter::Create(root_, "step-00000001", "a/b"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CheckpointTest, PruneKeepsTheNewest) {
  for (int64_t step : {1, 2, 3, 4}) Write(step);
  auto partial = CheckpointWriter::Create(root_, CheckpointFolder(5), "x.mck");  // still being written
  fs::create_directories(root_ / CheckpointFolder(0));  // left over from a checkpoint that was never completed
  ASSERT_THAT(PruneCheckpoints(root_, 2), IsOk());
  std::vector<int64_t> steps;
  const auto left = ListCheckpoints(root_);
  ASSERT_THAT(left, IsOk());
  for (const CheckpointManifest& manifest : *left) steps.push_back(manifest.step);
  EXPECT_THAT(steps, ElementsAre(3, 4));
  EXPECT_TRUE(fs::exists(root_ / CheckpointFolder(5)));
  EXPECT_FALSE(fs::exists(root_ / CheckpointFolder(0)));
}

TEST_F(CheckpointTest, CompleteNeedsEveryFile) {
  CheckpointManifest manifest = Write(7);
  manifest.files.push_back({"absent.mck", 1, 2});
  EXPECT_THAT(CompleteCheckpoint(root_, manifest), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("absent.mck")));
}

// Both the manifest's CRC and the file's own sections detect any flipped bit and any truncation of a data file.
TEST_F(CheckpointTest, RandomDamageIsAlwaysNoticed) {
  const CheckpointManifest manifest = Write(7);
  base::Rng rng(20261121);
  for (int round = 0; round < 600; ++round) {
    const CheckpointFileEntry& entry = manifest.files[rng.Below(manifest.files.size())];
    const fs::path file = root_ / manifest.folder / entry.name;
    const std::string good = *base::ReadFile(file);
    std::string bad = good;
    const uint64_t kind = rng.Below(3);
    if (kind == 0) bad[rng.Below(bad.size())] ^= static_cast<char>(1 << rng.Below(8));
    if (kind == 1) bad.resize(rng.Below(bad.size()));
    if (kind == 2) bad.append(1 + rng.Below(40), static_cast<char>(rng.Below(256)));
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bad;
    EXPECT_THAT(VerifyCheckpoint(root_, manifest), StatusIs(absl::StatusCode::kDataLoss)) << "round " << round;
    CheckpointHandlers handlers;
    handlers.dense = [](auto&&...) { return absl::OkStatus(); };
    handlers.rows = [](auto&&...) { return absl::OkStatus(); };
    EXPECT_THAT(ReadCheckpoint(root_, manifest, std::move(handlers)), StatusIs(absl::StatusCode::kDataLoss))
        << "round " << round << " kind " << kind;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << good;
  }
  EXPECT_THAT(VerifyCheckpoint(root_, manifest), IsOk());
}

TEST_F(CheckpointTest, DamagedManifestsAreRefused) {
  const CheckpointManifest manifest = Write(7);
  const std::string good = ToJson(manifest);
  ASSERT_EQ(*ParseManifest(good), manifest);
  base::Rng rng(7);
  for (int round = 0; round < 300; ++round) {
    // The parser must not crash; a damaged manifest may still parse.
    std::string bad = good;
    bad[rng.Below(bad.size())] = static_cast<char>(rng.Below(256));
    (void)ParseManifest(bad);
    EXPECT_THAT(ParseManifest(good.substr(0, rng.Below(good.size() - 3))), StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_THAT(ParseManifest(R"({"format": 2})"), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("format 2")));
}

}  // namespace
}  // namespace medley::worker
