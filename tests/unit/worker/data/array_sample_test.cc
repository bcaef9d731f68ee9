// Arrays in a mapped file: the same samples as in memory, in little memory.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/unit/worker/data/array_bytes.h"
#include "tests/unit/worker/data/child_memory.h"
#include "tests/unit/worker/data/sample_folder.h"
#include "worker/data/dataset.h"
#include "worker/data/memory_estimate.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kMebibyte = int64_t{1} << 20;

class ArraySampleTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *base::MakeTempDir("medley-array-samples");
    folder_ = root_ / "samples";
    fs::create_directory(root_ / "data");
    spec_.schema.task = model::Task::kMultiClass;
    spec_.train = {.uri = "file:///data/x.npy", .format = "npy", .labels = "file:///data/y.npy"};
    spec_.schema.inputs = {{.name = "x", .type = "float32", .shape = {kWidth}, .scale = 0.5, .mean = {1}}};
  }
  void TearDown() override { base::RemoveTempDir(root_); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(root_ / "data" / name, std::ios::binary) << bytes;
  }
  template <typename T>
  std::vector<T> Numbers(int64_t count, uint64_t below, uint64_t seed) {
    base::Rng rng(seed);
    std::vector<T> numbers(static_cast<size_t>(count));
    for (T& number : numbers) number = static_cast<T>(rng.Below(below));
    return numbers;
  }
  void WriteX(int samples, const std::string& name = "x.npy", uint64_t seed = 3) {
    Write(name, NpyBytes("<f4", fmt::format("({}, {})", samples, kWidth),
                         BytesOf(Numbers<float>(int64_t{samples} * kWidth, 1000, seed))));
  }
  void WriteY(int samples) {
    Write("y.npy", NpyBytes("<i8", fmt::format("({},)", samples), BytesOf(Numbers<int64_t>(samples, 7, 5))));
  }
  void WaitForTheClock() { worker::WaitForTheClock(root_); }
  absl::StatusOr<std::shared_ptr<const Dataset>> Load(bool file, const Transform* transform = nullptr) {
    said_.clear();
    LoadOptions options{.root = root_.string()};
    if (file) options.place = {.folder = folder_, .most_in_memory = 0};
    options.say = [this](const std::string& sentence) { said_.push_back(sentence); };
    return Dataset::Load(spec_.train, spec_, transform, options);
  }
  static void ExpectEqual(const Dataset& a, const Dataset& b) {
    EXPECT_EQ(a.rows(), b.rows());
    EXPECT_EQ(a.digest(), b.digest());
    EXPECT_EQ(a.shape(), b.shape());
    EXPECT_EQ(a.transform().label.classes, b.transform().label.classes);
    const Batch left = a.all(), right = b.all();
    EXPECT_EQ(left.ids, right.ids);
    EXPECT_EQ(left.numerics, right.numerics);
    EXPECT_EQ(left.labels, right.labels);
    ASSERT_EQ(a.validation() == nullptr, b.validation() == nullptr);
    if (a.validation() != nullptr) ExpectEqual(*a.validation(), *b.validation());
  }
  // Reads into memory, into a file, and from it.
  void ExpectTheSame(const std::string& what) {
    SCOPED_TRACE(what);
    WaitForTheClock();
    const auto memory = Load(false);
    ASSERT_TRUE(memory.ok()) << base::ToString(memory.status());
    base::RemoveTempDir(folder_);
    const auto file = Load(true);
    ASSERT_TRUE(file.ok()) << base::ToString(file.status());
    EXPECT_TRUE((*file)->mapped());
    ExpectEqual(**memory, **file);
    ASSERT_THAT(Files(), SizeIs(1));
    struct stat made = {}, kept = {};
    ASSERT_EQ(stat(Files().front().c_str(), &made), 0);
    const auto again = Load(true);
    ASSERT_TRUE(again.ok()) << base::ToString(again.status());
    ExpectEqual(**memory, **again);
    ASSERT_EQ(stat(Files().front().c_str(), &kept), 0);
    EXPECT_EQ(made.st_ino, kept.st_ino) << "it is used again";
    EXPECT_THAT(said_, IsEmpty());
    const auto test = Load(true, &(*memory)->transform());
    ASSERT_TRUE(test.ok()) << base::ToString(test.status());
    EXPECT_EQ((*test)->validation(), nullptr);
    const auto test_in_memory = Load(false, &(*memory)->transform());
    ASSERT_THAT(test_in_memory, IsOk());
    ExpectEqual(**test_in_memory, **test);
  }
  std::vector<fs::path> Files() const { return FilesIn(folder_); }

  static constexpr int kWidth = 100;

  fs::path root_;
  fs::path folder_;  // of files of samples
  model::DataSpec spec_;
  std::vector<std::string> said_;
};

TEST_F(ArraySampleTest, HasTheSameSamplesAsMemory) {
  constexpr int kSamples = 20'000;  // some pieces
  WriteX(kSamples);
  WriteY(kSamples);
  ExpectTheSame("classes");
  spec_.validation.emplace().fraction = 0.3;
  ExpectTheSame("with samples for validation");

  Write("t.npy",
        NpyBytes("<i4", fmt::format("({}, 20)", kSamples), BytesOf(Numbers<int32_t>(kSamples * 20, 30'000, 8))));
  spec_.train.uri.clear();
  spec_.train.files = {{"x", "file:///data/x.npy"}, {"t", "file:///data/t.npy"}};
  spec_.schema.inputs.push_back({.name = "t", .type = "int64", .shape = {4, 5}});
  ExpectTheSame("two inputs");

  spec_.schema.label_count = 20;
  spec_.train.labels = "file:///data/t.npy";
  spec_.schema.task = model::Task::kRegression;
  ExpectTheSame("several labels");

  spec_.schema.task = model::Task::kOwnLoss;
  spec_.schema.label_count = 1;
  spec_.train.labels.clear();
  ExpectTheSame("no labels");
}

TEST_F(ArraySampleTest, FilesOfAPatternAndCompressedOnes) {
  for (int i = 0; i < 3; ++i) WriteX(3'000 + i, fmt::format("part-{}.npy", i), static_cast<uint64_t>(i));
  WriteY(9'003);
  spec_.train.uri = "file:///data/part-*.npy";
  ExpectTheSame("several files");
  const std::string bytes =
      NpyBytes("<f4", fmt::format("(9003, {})", kWidth), BytesOf(Numbers<float>(9'003 * kWidth, 9, 1)));
  const gzFile gz = gzopen((root_ / "data" / "z.npy.gz").c_str(), "wb1");
  ASSERT_EQ(gzwrite(gz, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
  ASSERT_EQ(gzclose(gz), Z_OK);
  spec_.train.uri = "file:///data/z.npy.gz";
  ExpectTheSame("compressed");
}

// Two inputs of the same shape whose files change places are other samples.
TEST_F(ArraySampleTest, WhichFileIsOfWhichInputIsAPartOfTheKey) {
  WriteX(2'000, "a.npy", 1);
  WriteX(2'000, "b.npy", 2);
  WriteY(2'000);
  spec_.schema.inputs = {{.name = "p", .type = "float32", .shape = {kWidth}},
                         {.name = "q", .type = "float32", .shape = {kWidth}}};
  spec_.train.uri.clear();
  spec_.train.files = {{"p", "file:///data/a.npy"}, {"q", "file:///data/b.npy"}};
  WaitForTheClock();
  const auto first = Load(true);
  ASSERT_THAT(first, IsOk());
  spec_.train.files = {{"p", "file:///data/b.npy"}, {"q", "file:///data/a.npy"}};
  const auto second = Load(true);
  ASSERT_THAT(second, IsOk());
  EXPECT_NE((*first)->digest(), (*second)->digest());
  EXPECT_THAT(Files(), SizeIs(2));
}

TEST_F(ArraySampleTest, ErrorsAreThoseOfMemory) {
  const auto both = [&](const std::string& part) {
    SCOPED_TRACE(part);
    const absl::Status memory = Load(false).status(), file = Load(true).status();
    EXPECT_THAT(base::Message(memory), HasSubstr(part));
    EXPECT_EQ(file.ToString(), memory.ToString());
    EXPECT_THAT(said_, IsEmpty());
    EXPECT_THAT(Files(), IsEmpty()) << "nothing remains";
  };
  WriteX(9'000);
  WriteY(8'999);
  both("has 9000 samples, but");
  WriteY(9'001);
  both("has 9000 samples, but");
  WriteY(9'000);
  spec_.schema.inputs[0].scale = 1e39;
  both("of sample 0 is");
  spec_.schema.inputs[0].scale = 1;
  spec_.schema.inputs[0].shape = {kWidth + 1};
  both("is expected");
  spec_.schema.inputs[0].shape = {kWidth};
  spec_.schema.task = model::Task::kBinary;
  both("which is not 0 or 1");
  Write("y.npy", NpyBytes("<i8", "(9000,)", BytesOf(std::vector<int64_t>(9'000, 1))));
  both("nothing can be learnt");
  spec_.schema.task = model::Task::kMultiClass;
  WriteY(9'000);
  std::ofstream(root_ / "data" / "x.npy", std::ios::app) << "1234";
  both("left over");
}

TEST_F(ArraySampleTest, AFileThatIsChangedIsReadAgain) {
  WriteX(3'000);
  WriteY(3'000);
  WaitForTheClock();
  const auto first = Load(true);
  WriteX(3'000, "x.npy", 99);
  WaitForTheClock();
  const auto second = Load(true), memory = Load(false);
  ASSERT_THAT(second, IsOk());
  EXPECT_NE((*second)->digest(), (*first)->digest());
  ExpectEqual(**memory, **second);
}

// Samples that would not fit into the memory of the process are read where there is a disk for them.
TEST_F(ArraySampleTest, WhatDoesNotFitIntoMemoryIsNotRefused) {
  WriteX(50'000);
  WriteY(50'000);
  const MemoryRoom small{.limit = 8 * kMebibyte, .used = 2 * kMebibyte};
  EXPECT_FALSE(CheckDataFit(spec_, root_.string(), small).ok());
  EXPECT_THAT(CheckDataFit(spec_, root_.string(), small, PlaceIn(folder_, true, small.limit)), IsOk());
}

TEST_F(ArraySampleTest, MemoryDoesNotGrowWithTheSamples) {
  if (std::getenv("MEDLEY_SANITIZE") != nullptr) return;  // sanitizers take memory of their own
  const auto highest = [&](bool file) { return MemoryInChild([&] { return Load(file).ok(); }).highest; };
  for (const int samples : {100'000, 200'000}) {
    WriteX(samples);
    WriteY(samples);
    const int64_t memory = highest(false), file = highest(true);
    std::printf("%.0f MB of numbers: in memory %.0f MiB at most, in a file %.0f MiB\n", samples * kWidth * 4e-6,
                static_cast<double>(memory) / kMebibyte, static_cast<double>(file) / kMebibyte);
    EXPECT_GT(memory, int64_t{samples} * kWidth * 4);
    EXPECT_LT(file, 16 * kMebibyte);
  }
}

}  // namespace
}  // namespace medley::worker
