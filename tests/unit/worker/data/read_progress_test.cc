#include "worker/data/read_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/base/file.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/data/dataset.h"

namespace medley::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Each look at it is a second later.
class TickingClock final : public base::Clock {
 public:
  base::WallTime Now() const override { return {}; }
  base::SteadyTime Steady() const override {
    const base::MutexLock lock(mutex_);
    return base::SteadyTime(base::seconds(++looks_));
  }
  bool SleepUntil(base::SteadyTime, std::stop_token) override { return true; }

 private:
  mutable base::Mutex mutex_;
  mutable int64_t looks_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(ReadProgressTest, TheTextSaysBytesOfAllAndRows) {
  EXPECT_EQ(ReadProgressText("x", 345'000'000, 1'500'000'000, 1'200'000),
            "reading x: 345 of 1,500 MB (23 %), 1,200,000 rows");
  EXPECT_EQ(ReadProgressText("x", 1'250'000, 5'000'000, 1), "reading x: 1.2 of 5.0 MB (25 %), 1 row");
  EXPECT_EQ(ReadProgressText("x", 9, 7, 0), "reading x: 0.0 of 0.0 MB (100 %), 0 rows") << "the file has grown";
  EXPECT_EQ(ReadProgressText("x", 0, 0, 1200), "reading x: 1,200 rows");
}

TEST(ReadProgressTest, LinesAreSecondsApartAndRarerInALongRead) {
  base::FakeClock clock;
  std::vector<std::string> lines;
  ReadProgress progress("x", clock, [&](const std::string& line) { lines.push_back(line); });
  progress.Expect(100'000'000);
  for (int i = 0; i < 49; ++i) {  // 4.9 seconds
    progress.Read(1'000'000);
    clock.Advance(base::milliseconds(100));
  }
  EXPECT_THAT(lines, IsEmpty());
  clock.Advance(base::milliseconds(100));
  for (int i = 0; i < 5; ++i) progress.Parsed(10);
  EXPECT_THAT(lines, ElementsAre("reading x: 49 of 100 MB (49 %), 10 rows"));
  for (int second = 5; second < 3600; ++second) {
    clock.Advance(base::seconds(1));
    progress.Parsed(1);
  }
  EXPECT_GT(lines.size(), 10u);
  EXPECT_LE(lines.size(), 45u);
}

TEST(ReadProgressTest, ALoadSaysWhatItHasReadOfAllFiles) {
  const std::filesystem::path folder = *base::MakeTempDir("read-progress");
  int64_t bytes = 0;
  for (const char* name : {"a.csv", "b.csv"}) {
    std::string text;
    for (int i = 0; i < 250'000; ++i) text += i % 2 == 0 ? "0,red,12.5\n" : "1,blue,3.25\n";
    std::ofstream(folder / name, std::ios::binary) << text;
    bytes += static_cast<int64_t>(text.size());
  }
  TickingClock clock;
  std::vector<std::string> lines;
  ReadProgress progress("the training data", clock, [&](const std::string& line) { lines.push_back(line); });
  model::DataSpec spec;
  spec.train = {"file:///*.csv", "csv"};
  spec.schema.label_column = 0;
  spec.schema.categorical = {1};
  spec.schema.numeric = {2};
  const auto data = Dataset::Load(
      spec.train, spec, nullptr, {.embedding_rows = 100, .threads = 2, .root = folder.string(), .progress = &progress});
  base::RemoveTempDir(folder);
  ASSERT_THAT(data, base::IsOk());
  EXPECT_FALSE(lines.empty()) << "there was no line while the files were read";
  for (int i = 0; i < 20; ++i) progress.Parsed(0);  // the next line has all that was read
  EXPECT_EQ(bytes, 5'750'000);
  EXPECT_EQ(lines.back(), "reading the training data: 5.8 of 5.8 MB (100 %), 500,000 rows");
}

}  // namespace
}  // namespace medley::worker
