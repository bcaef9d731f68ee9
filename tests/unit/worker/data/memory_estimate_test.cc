// The estimate of what data take is compared with what reading them really takes, in a process of its own for each.
#include "worker/data/memory_estimate.h"

#include <gmock/gmock.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/data/dataset.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMib = int64_t{1} << 20;
// Memory that tests before have freed, which a child uses again without growing.
constexpr int64_t kReused = 3 * kMib;

class MemoryEstimateTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("medley-memory"); }
  void TearDown() override { base::RemoveTempDir(root_); }

  // A label and `columns` numbers of `digits` digits.
  void WriteCsv(const std::string& name, int rows, int columns, int digits, bool gzip = false) {
    base::Rng rng(7);
    std::string block, text;
    for (int row = 0; row < 1000; ++row) {
      block += std::to_string(row % 2);
      for (int c = 0; c < columns; ++c) {
        block += ',';
        for (int d = 0; d < digits; ++d) block += static_cast<char>('1' + rng.Below(9));
      }
      block += '\n';
    }
    for (int row = 0; row < rows; row += 1000) text += block;
    if (!gzip) {
      std::ofstream(root_ / name) << text;
      return;
    }
    const gzFile file = gzopen((root_ / name).c_str(), "wb1");
    ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
    ASSERT_EQ(gzclose(file), Z_OK);
  }
  static model::DataSpec Csv(const std::string& pattern, int columns, bool categorical = false) {
    model::DataSpec spec;
    spec.train = {.uri = "file:///" + pattern, .format = "csv"};
    spec.schema.label_column = 0;
    spec.schema.label_positive = "1";
    for (int c = 1; c <= columns; ++c) (categorical ? spec.schema.categorical : spec.schema.numeric).push_back(c);
    return spec;
  }
  DataMemory Estimate(const model::DataSpec& spec) const {
    const auto memory = EstimateMemory(spec.train, spec, root_);
    EXPECT_THAT(memory, IsOk());
    return memory.value_or(DataMemory());
  }
  // By how much the resident memory of a process grew at most while it read the data, in bytes.
  int64_t Real(const model::DataSpec& spec) const {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      malloc_trim(0);                                 // what the test has freed would not count as new
      std::ofstream("/proc/self/clear_refs") << "5";  // begins the highest resident memory again
      const int64_t before = Highest();
      const auto data = Dataset::Load(spec.train, spec, nullptr, {.threads = 2, .root = root_});
      const int64_t grown = data.ok() ? Highest() - before : -1;
      _exit(write(ends[1], &grown, sizeof grown) == sizeof grown ? 0 : 1);
    }
    int64_t grown = -1;
    EXPECT_EQ(read(ends[0], &grown, sizeof grown), static_cast<ssize_t>(sizeof grown));
    close(ends[0]);
    close(ends[1]);
    waitpid(child, nullptr, 0);
    return grown;
  }
  static int64_t Highest() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      if (word != "VmHWM:") continue;
      int64_t kib = 0;
      status >> kib;
      return kib << 10;
    }
    return 0;
  }
  // Data that fit by what they really take are accepted, and those that need more are refused.
  void Check(const char* what, const model::DataSpec& spec) {
    SCOPED_TRACE(what);
    const DataMemory estimate = Estimate(spec);
    const int64_t real = Real(spec);
    std::printf("%s: estimated %.1f MiB, really %.1f MiB: %.2f times\n", what,
                static_cast<double>(estimate.peak) / kMib, static_cast<double>(real) / kMib,
                static_cast<double>(real) / static_cast<double>(estimate.peak));
    EXPECT_LE(estimate.peak, real + kReused);
    if (std::getenv("MEDLEY_SANITIZE") != nullptr) return;  // sanitizers take memory of their own
    EXPECT_GE(kMostAboveEstimate * static_cast<double>(estimate.peak), static_cast<double>(real));
    const auto fits = [&](int64_t limit) { return CheckDataFit(spec, root_, {.limit = limit, .used = 0}); };
    EXPECT_THAT(fits(real + kReused), IsOk());
    EXPECT_THAT(fits(static_cast<int64_t>(static_cast<double>(real) / kMostAboveEstimate) - 1),
                StatusIs(absl::StatusCode::kOutOfRange));
  }

  fs::path root_;
};

TEST_F(MemoryEstimateTest, IsWithinItsFactorOfWhatTextsReallyTake) {
  WriteCsv("short.csv", 400'000, 10, 2);
  Check("short numbers", Csv("short.csv", 10));
  WriteCsv("long.csv", 60'000, 10, 24);
  Check("long numbers", Csv("long.csv", 10));
  Check("categories", Csv("short.csv", 10, true));
  Check("few of the columns", Csv("short.csv", 2));
  WriteCsv("packed.csv.gz", 400'000, 10, 2, true);
  Check("compressed", Csv("packed.csv.gz", 10));
  for (int part = 0; part < 12; ++part) WriteCsv("part-" + std::to_string(10 + part) + ".csv", 40'000, 10, 2);
  Check("twelve files", Csv("part-*.csv", 10));
}

TEST_F(MemoryEstimateTest, IsWithinItsFactorOfWhatArraysReallyTake) {
  constexpr int kImages = 20'000;
  std::ofstream(root_ / "images", std::ios::binary) << std::string(size_t{kImages} * 784, '\x03');
  std::string labels;
  for (int i = 0; i < kImages; ++i) labels += static_cast<char>(i % 10);
  std::ofstream(root_ / "labels", std::ios::binary) << labels;
  model::DataSpec spec;
  spec.train = {.uri = "file:///images", .format = "raw", .labels = "file:///labels"};
  spec.schema.inputs = {{.name = "x", .type = "float32", .shape = {1, 28, 28}, .storage = "uint8"}};
  spec.schema.task = model::Task::kMultiClass;
  spec.schema.label_storage = "uint8";
  spec.schema.label_count = 1;
  EXPECT_EQ(Estimate(spec).rows, kImages);
  Check("images", spec);
}

// The length of the first rows is not that of all.
TEST_F(MemoryEstimateTest, RowsThatBecomeLongerAreNotTakenForMany) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "1,2\n";
  for (int i = 0; i < 3'000; ++i) text += "0," + std::string(2000, ' ') + "3\n";
  std::ofstream(root_ / "grows.csv") << text;
  EXPECT_LT(Estimate(Csv("grows.csv", 1)).rows, 303'000);
}

TEST_F(MemoryEstimateTest, HeadersBlankLinesAndBadRowsAreNotKept) {
  std::ofstream(root_ / "few.csv") << "label,x\n1,2\n\n   \n0,3\r\n1,4";
  model::DataSpec spec = Csv("few.csv", 1);
  spec.schema.header = true;
  EXPECT_EQ(Estimate(spec).rows, 3);
  EXPECT_EQ(Estimate(spec).kept, 3 * 8);
  spec.max_bad_rows = 1000;
  EXPECT_EQ(Estimate(spec).kept, 0);
  EXPECT_GE(Estimate(spec).peak, 0);
}

TEST_F(MemoryEstimateTest, TheRefusalSaysWhatIsNeededWhatThereIsAndWhatToDo) {
  WriteCsv("train.csv", 200'000, 10, 2);
  WriteCsv("test.csv", 300'000, 10, 2);
  model::DataSpec spec = Csv("train.csv", 10);
  EXPECT_THAT(CheckDataFit(spec, root_, {.limit = 64 * kMib, .used = 10 * kMib}), IsOk());
  const absl::Status refused = CheckDataFit(spec, root_, {.limit = 16 * kMib, .used = 10 * kMib});
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kOutOfRange,
                                AllOf(HasSubstr("training data ("), HasSubstr("need at least 2"),
                                      HasSubstr("may use 16 MiB, of which 10 MiB are used"),
                                      HasSubstr("unit.resources.memory"), HasSubstr("train on a part of the data"))));
  spec.test = {.uri = "file:///test.csv", .format = "csv"};
  EXPECT_THAT(CheckDataFit(spec, root_, {.limit = 30 * kMib, .used = 0}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("training and test data (")));
  EXPECT_THAT(CheckDataFit(spec, root_, {.limit = 100 * kMib, .used = 0}), IsOk());
}

TEST_F(MemoryEstimateTest, WhatIsWrongWithTheFilesIsSaidByReadingThem) {
  EXPECT_THAT(CheckDataFit(Csv("absent.csv", 1), root_, {.limit = 1, .used = 0}), IsOk());
}

// A forged header says that there are 2^40 samples; the file is short.
TEST_F(MemoryEstimateTest, AHeaderIsNotBelievedBeyondItsFile) {
  std::string idx("\0\0\x08\x03", 4);
  idx += std::string("\x7f\xff\xff\xff", 4) + std::string("\0\0\0\x1c\0\0\0\x1c", 8) + std::string(784 * 3, '\x01');
  std::ofstream(root_ / "images.idx", std::ios::binary) << idx;
  model::DataSpec spec;
  spec.train = {.uri = "file:///images.idx", .format = "idx"};
  spec.schema.inputs = {{.name = "x", .type = "float32", .shape = {28, 28}}};
  EXPECT_EQ(Estimate(spec).rows, 3);
}

}  // namespace
}  // namespace medley::worker
