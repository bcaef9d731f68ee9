// Samples that are read ahead: the same as those in memory, in little memory, and never wrong.
#include "worker/data/sample_windows.h"
#include "tests/unit/worker/data/child_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr int64_t kWindowsMib = int64_t{1} << 20;
constexpr SampleShape kWindowsShape{.fields = 10, .numerics = 4, .labels = 1};  // 64 bytes with the weight
constexpr int64_t kWindowsBlock = kBlockBytes / 64;

class SampleWindowsTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("medley-windows"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  // Sample i has values that only it has.
  static Batch Samples(int64_t first, int64_t count) {
    Batch batch{.shape = kWindowsShape,
                .samples = static_cast<int>(count),
                .ids = {},
                .numerics = {},
                .labels = {},
                .weights = {}};
    for (int64_t i = first; i < first + count; ++i) {
      for (int k = 0; k < kWindowsShape.fields; ++k) batch.ids.push_back(static_cast<int32_t>(i * 10 + k));
      for (int k = 0; k < kWindowsShape.numerics; ++k)
        batch.numerics.push_back(static_cast<float>(i) + static_cast<float>(k) / 4);
      batch.labels.push_back(static_cast<float>(i % 7));
      batch.weights.push_back(static_cast<float>(i % 5));
    }
    return batch;
  }
  // A file of `samples` with the name path(), appended in pieces of odd sizes.
  std::shared_ptr<const SampleFile> MakeFile(int64_t samples) {
    const SampleCounts counts{.shape = kWindowsShape, .weights = true, .samples = {samples, 0}};
    auto writer = SampleFileWriter::Create(folder_, true, counts, {.transform = {}, .bad_rows = 0, .digest = "d"});
    EXPECT_THAT(writer, IsOk());
    base::Rng rng(4);
    for (int64_t at = 0; at < samples;) {
      const int64_t count = std::min<int64_t>(samples - at, 1 + static_cast<int64_t>(rng.Below(3 * kWindowsBlock)));
      EXPECT_THAT((*writer)->Append(RowSet::kTraining, Samples(at, count)), IsOk());
      at += count;
    }
    auto file = (*writer)->Finish(kKey, path());
    EXPECT_THAT(file, IsOk());
    return *file;
  }
  fs::path path() const { return folder_ / "samples"; }

  static void ExpectSamples(const SampleOrder& order, const std::vector<int64_t>& positions, const Batch& batch,
                            unsigned parts = kAllParts) {
    ASSERT_EQ(batch.samples, static_cast<int>(positions.size()));
    for (size_t i = 0; i < positions.size(); ++i) {
      const Batch one = Samples(order(positions[i]), 1);
      const auto equal = [&](const auto& all, const auto& values) {
        return std::equal(values.begin(), values.end(), all.begin() + static_cast<ptrdiff_t>(i * values.size()));
      };
      ASSERT_TRUE(!(parts & kIds) || equal(batch.ids, one.ids)) << positions[i];
      ASSERT_TRUE(!(parts & kNumerics) || equal(batch.numerics, one.numerics)) << positions[i];
      ASSERT_TRUE(!(parts & kLabels) || equal(batch.labels, one.labels)) << positions[i];
      ASSERT_TRUE(!(parts & kWeights) || equal(batch.weights, one.weights)) << positions[i];
    }
  }
  static std::vector<int64_t> Range(int64_t first, int64_t end) {
    std::vector<int64_t> positions;
    for (int64_t i = first; i < end; ++i) positions.push_back(i);
    return positions;
  }

  inline static const std::string kKey = std::string(32, 'k');
  fs::path folder_;
};

TEST_F(SampleWindowsTest, GivesEachSampleOfSeveralDataEpochs) {
  for (const int64_t samples : {10 * kWindowsBlock, 10 * kWindowsBlock + 1, 13 * kWindowsBlock - 1}) {
    const auto file = MakeFile(samples);
    ASSERT_EQ(file->block_samples(), kWindowsBlock);
    for (const int threads : {1, 4}) {
      SampleWindows windows(file, RowSet::kTraining, threads);
      base::Rng rng(8);
      Batch batch;
      for (const int64_t epoch : {0, 1}) {
        const SampleOrder order(samples, 5, {.block = kWindowsBlock, .window = 3}, epoch);
        ASSERT_TRUE(windows.Serves(order));
        for (int64_t at = 0; at < samples;) {
          const int64_t end = std::min<int64_t>(samples, at + 1 + static_cast<int64_t>(rng.Below(4000)));
          const std::vector<int64_t> positions = Range(at, end);
          ASSERT_THAT(windows.Gather(order, positions, kAllParts, {}, batch), IsOk());
          ExpectSamples(order, positions, batch);
          at = end;
        }
      }
      EXPECT_LE(windows.kept_bytes(), 2 * 3 * kBlockBytes);
      EXPECT_FALSE(windows.damaged());
    }
  }
}

// A rollback goes back, a batch may be larger than several windows, and a device asks for the samples of its seats.
TEST_F(SampleWindowsTest, GivesSamplesInAnyOrderOfRequests) {
  const int64_t samples = 12 * kWindowsBlock + 7;
  SampleWindows windows(MakeFile(samples), RowSet::kTraining, 2);
  const SampleOrder order(samples, 5, {.block = kWindowsBlock, .window = 2}, 0);
  Batch batch;
  base::Rng rng(8);
  for (int i = 0; i < 20; ++i) {
    std::vector<int64_t> positions;
    for (int k = 0; k < 50; ++k) positions.push_back(static_cast<int64_t>(rng.Below(static_cast<uint64_t>(samples))));
    ASSERT_THAT(windows.Gather(order, positions, kAllParts, {}, batch), IsOk());
    ExpectSamples(order, positions, batch);
  }
  ASSERT_THAT(windows.Gather(order, Range(0, samples), kAllParts, {}, batch), IsOk());
  ExpectSamples(order, Range(0, samples), batch);
}

TEST_F(SampleWindowsTest, ReadsOnlyTheListsThatAreAskedFor) {
  const int64_t samples = 12 * kWindowsBlock;
  SampleWindows windows(MakeFile(samples), RowSet::kTraining, 2);
  const SampleOrder order(samples, 5, {.block = kWindowsBlock, .window = 2}, 0);
  Batch batch;
  ASSERT_THAT(windows.Gather(order, Range(0, 100), kNoParts, {}, batch), IsOk());
  EXPECT_EQ(windows.kept_bytes(), 0);
  EXPECT_EQ(batch.ids.size(), 1000U);  // of any value
  ASSERT_THAT(windows.Gather(order, Range(0, 100), kLabels | kWeights, {}, batch), IsOk());
  ExpectSamples(order, Range(0, 100), batch, kLabels | kWeights);
  EXPECT_EQ(windows.kept_bytes(), 2 * 2 * kWindowsBlock * 8);
  ASSERT_THAT(windows.Gather(order, Range(100, 300), kAllParts, {}, batch), IsOk());
  ExpectSamples(order, Range(100, 300), batch);
}

TEST_F(SampleWindowsTest, AFileThatIsDamagedWhileItIsReadIsAnError) {
  const int64_t samples = 12 * kWindowsBlock;
  const SampleOrder order(samples, 5, {.block = kWindowsBlock, .window = 2}, 0);
  const auto read_all = [&](SampleWindows& windows) {
    Batch batch;
    for (int64_t at = 0; at < samples; at += 1000) {
      const std::vector<int64_t> positions = Range(at, std::min(samples, at + 1000));
      if (absl::Status read = windows.Gather(order, positions, kAllParts, {}, batch); !read.ok()) return read;
      ExpectSamples(order, positions, batch);
    }
    return absl::OkStatus();
  };
  {
    SampleWindows windows(MakeFile(samples), RowSet::kTraining, 2);
    const int fd = open(path().c_str(), O_RDWR);
    const int64_t at = static_cast<int64_t>(fs::file_size(path())) - 5 * kWindowsBlock * 4;  // among the weights
    char byte = 0;
    ASSERT_EQ(pread(fd, &byte, 1, at), 1);
    byte = static_cast<char>(byte ^ 16);
    ASSERT_EQ(pwrite(fd, &byte, 1, at), 1);
    close(fd);
    const absl::Status damaged = read_all(windows);
    EXPECT_THAT(damaged, StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(std::string(damaged.message()), testing::AllOf(HasSubstr("block 7 "), HasSubstr(path().string())));
    EXPECT_TRUE(windows.damaged());
    EXPECT_FALSE(SampleFile::Open(path(), kKey, {}, {}).ok());
  }
  {
    SampleWindows windows(MakeFile(samples), RowSet::kTraining, 2);
    ASSERT_EQ(truncate(path().c_str(), static_cast<off_t>(fs::file_size(path()) / 2)), 0);
    const absl::Status truncated = read_all(windows);
    EXPECT_THAT(truncated, StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(std::string(truncated.message()), HasSubstr("ends too early"));
  }
  // One that loses its name stays as long as it is open.
  SampleWindows windows(MakeFile(samples), RowSet::kTraining, 2);
  fs::remove(path());
  EXPECT_THAT(read_all(windows), IsOk());
}

TEST_F(SampleWindowsTest, AStopEndsTheWait) {
  SampleWindows windows(MakeFile(12 * kWindowsBlock), RowSet::kTraining, 1);
  std::stop_source stop;
  stop.request_stop();
  Batch batch;
  const SampleOrder order(12 * kWindowsBlock, 5, {.block = kWindowsBlock, .window = 5}, 0);
  EXPECT_THAT(windows.Gather(order, Range(0, 5), kAllParts, stop.get_token(), batch),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(windows.Gather(order, Range(0, 5), kAllParts, {}, batch), IsOk());
}

// What a process that reads the whole file has resident, pages of files included.
TEST_F(SampleWindowsTest, MemoryDoesNotGrowWithTheSamples) {
  if (std::getenv("MEDLEY_SANITIZE") != nullptr) return;  // sanitizers take memory of their own
  for (const int64_t mib : {32, 128}) {
    const int64_t samples = mib * kWindowsMib / 64;
    fs::remove(path());
    MakeFile(samples);
    const int64_t grown = MemoryInChild([&] {
                            const auto file = SampleFile::Open(path(), kKey, {}, {});
                            if (!file.ok()) return false;
                            SampleWindows windows(*file, RowSet::kTraining, 2);
                            const SampleOrder order(samples, 5, {.block = kWindowsBlock, .window = 8}, 0);
                            Batch batch;
                            absl::Status status;
                            for (int64_t at = 0; at < samples && status.ok(); at += 512) {
                              status =
                                  windows.Gather(order, Range(at, std::min(samples, at + 512)), kAllParts, {}, batch);
                            }
                            return status.ok();
                          }).highest;
    std::printf("%ld MiB of samples, two windows of 2 MiB: %.1f MiB resident\n", static_cast<long>(mib),
                static_cast<double>(grown) / kWindowsMib);
    EXPECT_LT(grown, 10 * kWindowsMib);
  }
}

}  // namespace
}  // namespace medley::worker
