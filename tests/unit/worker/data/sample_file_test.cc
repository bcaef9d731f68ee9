// Rows of a table in a mapped file: the same as in memory, in little memory, and never wrong.
#include "worker/data/sample_file.h"
#include "tests/unit/worker/data/child_memory.h"
#include "tests/unit/worker/data/sample_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

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
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kMiB = int64_t{1} << 20;

class SampleFileTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *base::MakeTempDir("medley-samples");
    folder_ = root_ / "samples";
    fs::create_directory(root_ / "data");
    spec_.train = {.uri = "file:///data/x.csv", .format = "csv"};
    spec_.schema.header = true;
    spec_.schema.names.label = "y";
    spec_.schema.label_positive = "yes";
    spec_.schema.names.categorical = {"c"};
    spec_.schema.categorical = {-1};
    spec_.schema.names.numeric = {"a", "b"};
    spec_.schema.numeric = {-1, -1};
    spec_.schema.numeric_buckets = 8;
  }
  void TearDown() override { base::RemoveTempDir(root_); }

  // A header and rows with quotes, line breaks, missing values, skewed and large numbers.
  static std::string Table(int rows, uint64_t seed = 3) {
    base::Rng rng(seed);
    std::string text = "y,c,a,b,w\n";
    for (int row = 0; row < rows; ++row) {
      const uint64_t kind = rng.Below(50);
      const std::string category = kind == 0   ? "\"one\nline, \"\"more\"\"\""
                                   : kind == 1 ? "say \"hm\""
                                               : fmt::format("c{}", rng.Below(40));
      const std::string number = kind == 2 ? "NA" : fmt::format("{}", static_cast<double>(rng.Below(1000)) / 7);
      text += fmt::format("{},{},{},{},{}\n", rng.Below(3) == 0 ? "yes" : "no", category, number,
                          1'700'000'000 + static_cast<int64_t>(rng.Below(90'000)), rng.Below(4));
    }
    return text;
  }
  void Write(const std::string& text, const std::string& name = "x.csv") {
    std::ofstream(root_ / "data" / name, std::ios::binary) << text;
    WaitForTheClock();
  }
  void WaitForTheClock() { worker::WaitForTheClock(root_); }
  absl::StatusOr<std::shared_ptr<const Dataset>> Load(bool file, int threads = 2,
                                                      const Transform* transform = nullptr) {
    said_.clear();
    LoadOptions options{.embedding_rows = 1000, .threads = threads, .root = root_.string()};
    if (file) options.place = {.folder = folder_, .most_in_memory = 0};
    options.say = [this](const std::string& sentence) { said_.push_back(sentence); };
    return Dataset::Load(spec_.train, spec_, transform, options);
  }
  static void ExpectEqual(const Dataset& a, const Dataset& b) {
    EXPECT_EQ(a.rows(), b.rows());
    EXPECT_EQ(a.bad_rows(), b.bad_rows());
    EXPECT_EQ(a.digest(), b.digest());
    EXPECT_EQ(a.shape(), b.shape());
    EXPECT_EQ(ToBytes({a.transform(), 0, ""}), ToBytes({b.transform(), 0, ""}));
    const Batch left = a.all(), right = b.all();
    EXPECT_EQ(left.ids, right.ids);
    EXPECT_EQ(left.numerics, right.numerics);
    EXPECT_EQ(left.labels, right.labels);
    EXPECT_EQ(left.weights, right.weights);
    std::vector<int64_t> some = {a.rows() - 1, 0, a.rows() / 2};
    Batch gathered, other;
    a.Gather(some, gathered);
    b.Gather(some, other);
    EXPECT_EQ(gathered.ids, other.ids);
    EXPECT_EQ(gathered.numerics, other.numerics);
    ASSERT_EQ(a.validation() == nullptr, b.validation() == nullptr);
    if (a.validation() != nullptr) ExpectEqual(*a.validation(), *b.validation());
  }
  // Reads into memory and into a file, and compares.
  void ExpectTheSame(const std::string& what) {
    SCOPED_TRACE(what);
    const auto memory = Load(false);
    ASSERT_TRUE(memory.ok()) << base::ToString(memory.status());
    for (const int threads : {1, 3}) {
      base::RemoveTempDir(folder_);
      const auto file = Load(true, threads);
      ASSERT_TRUE(file.ok()) << base::ToString(file.status());
      EXPECT_TRUE((*file)->mapped());
      EXPECT_THAT(said_, IsEmpty());
      ExpectEqual(**memory, **file);
      if (threads > 1) continue;
      const auto again = Load(true, threads);
      ASSERT_TRUE(again.ok()) << base::ToString(again.status());
      ExpectEqual(**memory, **again);
    }
  }
  std::vector<fs::path> Files() const { return FilesIn(folder_); }
  struct stat StatOf(const fs::path& path) {
    struct stat status = {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status;
  }

  fs::path root_;
  fs::path folder_;  // of files of samples
  model::DataSpec spec_;
  std::vector<std::string> said_;
};

TEST_F(SampleFileTest, HasTheSameSamplesAsMemory) {
  Write(Table(120'000));  // some windows of text
  ExpectTheSame("two classes");
  spec_.validation.emplace().fraction = 0.3;
  ExpectTheSame("with rows for validation");
  spec_.schema.names.weight = "w";
  ExpectTheSame("with weights");
  spec_.schema.numeric_buckets = 0;
  spec_.schema.task = model::Task::kMultiClass;
  spec_.schema.label_positive = "";
  spec_.schema.names.label = "c";
  spec_.schema.names.categorical = {"y"};
  ExpectTheSame("many classes, which pieces number differently");
  spec_.schema.task = model::Task::kRegression;
  spec_.schema.names.label = "b";
  spec_.schema.names.numeric = {"a"};
  spec_.schema.numeric = {-1};
  ExpectTheSame("numbers that float32 would spoil");
}

TEST_F(SampleFileTest, ReadsWhatIsDifficultToDivideAsMemoryDoes) {
  spec_.max_bad_rows = 1000;
  const std::string rows = Table(20'000);
  Write(rows + "yes,\"never closed,1,2,0\n" + Table(60'000).substr(10) + "no,c1,1,2,3,4,5\n" +
        Table(20'000).substr(10) + "yes,c2,1,2");
  ExpectTheSame("a quote that is never closed, rows with other fields, no line break at the end");
  std::string returns = Table(100'000);
  for (size_t at = 0; (at = returns.find("one\nline, ", at)) != std::string::npos;) returns.replace(at, 10, "one ");
  std::erase(returns, '"');
  std::replace(returns.begin(), returns.end(), '\n', '\r');
  Write(returns);
  ExpectTheSame("carriage returns");
  Write(Table(10) + "yes,\"" + std::string(5 * kMiB, 'x') + "\",1,2,0\n" + Table(1000).substr(10));
  ExpectTheSame("a row that is longer than the window");
  Write("\xef\xbb\xbf" + Table(3000));
  ExpectTheSame("a small file with a mark");
  const gzFile gz = gzopen((root_ / "data" / "x.csv").c_str(), "wb1");
  const std::string text = Table(150'000);
  ASSERT_EQ(gzwrite(gz, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  ASSERT_EQ(gzclose(gz), Z_OK);
  WaitForTheClock();
  ExpectTheSame("compressed");
  for (int i = 0; i < 3; ++i) Write(Table(50'000, 5 + static_cast<uint64_t>(i)), fmt::format("part-{}.csv", i));
  spec_.train.uri = "file:///data/part-*.csv";
  ExpectTheSame("several files");
}

TEST_F(SampleFileTest, ErrorsAreThoseOfMemory) {
  const auto both = [&](const char* what) {
    SCOPED_TRACE(what);
    const absl::Status memory = Load(false).status(), file = Load(true).status();
    EXPECT_FALSE(memory.ok());
    EXPECT_EQ(file.ToString(), memory.ToString());
    EXPECT_THAT(said_, IsEmpty());
    EXPECT_THAT(Files(), IsEmpty()) << "nothing remains";
  };
  Write(Table(100'000) + "yes,c,1,2\n");
  both("a row with too few fields, far behind");
  Write("y,c,a,b,w\nyes,c,1,2,3\nyes,d,2,1,0\n");
  both("one class");
  Write("y,c,a,b,w\n");
  both("no rows");
  Write("y,c,a,w\nyes,c,1,2\n");
  both("no such column");
}

TEST_F(SampleFileTest, TestDataUseTheTransformOfTheTrainingData) {
  Write(Table(50'000));
  const auto train = Load(true);
  ASSERT_THAT(train, IsOk());
  const auto file = Load(true, 2, &(*train)->transform());
  const auto memory = Load(false, 2, &(*train)->transform());
  ASSERT_THAT(file, IsOk());
  ExpectEqual(**memory, **file);
  Transform other = (*train)->transform();
  other.columns[0].mean += 1;
  const auto shifted = Load(true, 2, &other);
  ASSERT_THAT(shifted, IsOk());
  EXPECT_NE((*shifted)->all().numerics, (*file)->all().numerics) << "another transform has a file of its own";
}

TEST_F(SampleFileTest, IsUsedAgainUntilTheFileOrTheSchemaChanges) {
  Write(Table(50'000));
  const auto first = Load(true);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(Files(), SizeIs(1));
  const struct stat made = StatOf(Files().front());
  const auto second = Load(true);
  ASSERT_THAT(second, IsOk());
  ExpectEqual(**first, **second);
  ASSERT_THAT(Files(), SizeIs(1));
  EXPECT_EQ(StatOf(Files().front()).st_ino, made.st_ino) << "the same file";

  spec_.schema.numeric_buckets = 4;
  const auto fewer = Load(true);
  ASSERT_THAT(fewer, IsOk());
  EXPECT_THAT(Files(), SizeIs(2));
  EXPECT_NE((*fewer)->all().ids, (*first)->all().ids);

  std::string text = Table(50'000);
  text[text.find("\nno,") + 4] = 'd';  // as long as before
  Write(text);
  const auto changed = Load(true);
  ASSERT_THAT(changed, IsOk());
  EXPECT_NE((*changed)->digest(), (*fewer)->digest());
  const auto memory = Load(false);
  ExpectEqual(**memory, **changed);
}

TEST_F(SampleFileTest, ADamagedFileIsFoundAndMadeAgain) {
  Write(Table(20'000));
  const auto right = Load(false);
  ASSERT_THAT(Load(true), IsOk());
  ASSERT_THAT(Files(), SizeIs(1));
  const fs::path path = Files().front();
  const std::string good = *base::ReadFile(path);
  std::vector<std::pair<std::string, std::string>> damaged = {{"empty", ""},
                                                              {"half of the header", good.substr(0, 70)},
                                                              {"half", good.substr(0, good.size() / 2)},
                                                              {"a byte less", good.substr(0, good.size() - 1)},
                                                              {"a byte more", good + "x"},
                                                              {"zeros", std::string(good.size(), '\0')}};
  base::Rng rng(11);
  for (int i = 0; i < 40; ++i) {
    std::string flipped = good;
    const size_t at = i < 20 ? static_cast<size_t>(i) * 7 : rng.Below(good.size());
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << rng.Below(8)));
    damaged.emplace_back(fmt::format("a bit of byte {}", at), flipped);
  }
  for (const auto& [what, bytes] : damaged) {
    SCOPED_TRACE(what);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    const bool padding =
        bytes.size() == good.size() && SampleFile::Open(path, path.filename().string().substr(8), {}, {}).ok();
    const auto data = Load(true);
    ASSERT_TRUE(data.ok()) << base::ToString(data.status());
    ExpectEqual(**right, **data);
    if (padding) continue;  // a byte between two lists, which nobody reads
    ASSERT_THAT(said_, SizeIs(1));
    EXPECT_THAT(said_[0], HasSubstr("the rows are read from"));
    EXPECT_EQ(*base::ReadFile(path), good) << "it was made again";
  }
}

TEST_F(SampleFileTest, AFileOfOtherDataIsNotUsed) {
  Write(Table(20'000));
  ASSERT_THAT(Load(true), IsOk());
  const fs::path of_x = Files().front();
  Write(Table(20'000, 77));
  const auto right = Load(false);
  ASSERT_THAT(Load(true), IsOk());
  for (const fs::path& path : Files()) {
    if (path != of_x) fs::copy_file(of_x, path, fs::copy_options::overwrite_existing);
  }
  const auto data = Load(true);
  ASSERT_THAT(data, IsOk());
  ExpectEqual(**right, **data);
  EXPECT_THAT(said_, SizeIs(1));
}

TEST_F(SampleFileTest, AWriterThatIsKilledLeavesNothingThatIsUsed) {
  Write(Table(100'000));
  const auto right = Load(false);
  for (const int pieces : {1, 4, 6}) {
    const pid_t child = fork();
    if (child == 0) {
      int left = pieces;
      LoadOptions options{.embedding_rows = 1000, .threads = 1, .root = root_.string()};
      options.place = {.folder = folder_, .most_in_memory = 0};
      options.on_piece = [&] {
        if (--left == 0) kill(getpid(), SIGKILL);
      };
      (void)Dataset::Load(spec_.train, spec_, nullptr, options);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << pieces;
    const auto data = Load(true);
    ASSERT_THAT(data, IsOk());
    ExpectEqual(**right, **data);
    EXPECT_THAT(said_, IsEmpty());
    EXPECT_THAT(Files(), SizeIs(1)) << "what the killed process wrote is removed";
    base::RemoveTempDir(folder_);
  }
}

// A process that is killed must not fill up a folder that outlives it.
TEST_F(SampleFileTest, AFileThatIsNotSharedHasNoName) {
  Write(Table(60'000));
  const auto right = Load(false);
  LoadOptions options{.embedding_rows = 1000, .threads = 2, .root = root_.string()};
  options.place = {.folder = folder_, .shared = false, .most_in_memory = 0};
  options.on_piece = [this] { EXPECT_THAT(Files(), IsEmpty()); };
  const auto data = Dataset::Load(spec_.train, spec_, nullptr, options);
  ASSERT_THAT(data, IsOk());
  EXPECT_TRUE((*data)->mapped());
  EXPECT_THAT(Files(), IsEmpty());
  ExpectEqual(**right, **data);
}

TEST_F(SampleFileTest, TwoProcessesCanWriteAtTheSameTime) {
  Write(Table(60'000));
  const auto right = Load(false);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    const auto data = Load(true);
    _exit(data.ok() && (*data)->digest() == (*right)->digest() && (*data)->all().ids == (*right)->all().ids ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(Files(), SizeIs(1));
}

TEST_F(SampleFileTest, RowsAreInMemoryWhereThereIsNoPlace) {
  Write(Table(20'000));
  const auto right = Load(false);
  const auto falls_back = [&](const std::string& why) {
    SCOPED_TRACE(why);
    const auto data = Load(true);
    ASSERT_TRUE(data.ok()) << base::ToString(data.status());
    EXPECT_FALSE((*data)->mapped());
    ExpectEqual(**right, **data);
    ASSERT_THAT(said_, SizeIs(1));
    EXPECT_THAT(said_[0], HasSubstr(why));
  };
  folder_ = root_ / "data" / "x.csv" / "samples";
  falls_back("cannot be");
  folder_ = "/proc/samples";
  falls_back("cannot be");
  folder_ = "/dev/shm/medley-samples-of-a-test";
  falls_back("in memory (tmpfs)");
  base::RemoveTempDir(folder_);
  EXPECT_THAT(WhyNoPlace(root_, int64_t{1} << 60), HasSubstr("of disk left and needs"));
}

// The disk is full while the rows are written: a limit for the size of files of this process fails in the same way.
TEST_F(SampleFileTest, LoadsIntoMemoryWhenADiskBecomesFull) {
  Write(Table(60'000));
  const auto right = Load(false);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto data = Load(true);
    const bool good = data.ok() && !(*data)->mapped() && (*data)->digest() == (*right)->digest() && said_.size() == 1 &&
                      said_[0].find("are kept in the memory of this process, because writing") != std::string::npos;
    _exit(good && Files().empty() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(SampleFileTest, AFileThatChangesWhileItIsReadIsRefused) {
  for (const bool file : {false, true}) {
    Write(Table(50'000));
    LoadOptions options{.embedding_rows = 1000, .threads = 1, .root = root_.string()};
    if (file) options.place = {.folder = folder_, .most_in_memory = 0};
    bool changed = false;
    options.on_piece = [&] {
      if (!std::exchange(changed, true)) std::ofstream(root_ / "data" / "x.csv", std::ios::app) << "yes,c1,1,2,0\n";
    };
    EXPECT_THAT(Dataset::Load(spec_.train, spec_, nullptr, options),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was changed while it was read")));
  }
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(SampleFileTest, OnlyTheFilesThatWereUsedLastAreKept) {
  Write(Table(2'000));
  for (int buckets = 2; buckets < 14; ++buckets) {
    spec_.schema.numeric_buckets = buckets;
    ASSERT_THAT(Load(true), IsOk());
  }
  EXPECT_THAT(Files(), SizeIs(8));
}

// The most resident memory of a process that reads the table, and without pages of files after all rows were used.
TEST_F(SampleFileTest, MemoryDoesNotGrowWithTheRows) {
  if (std::getenv("MEDLEY_SANITIZE") != nullptr) return;  // sanitizers take memory of their own
  const auto measure = [&](bool file) {
    std::shared_ptr<const Dataset> data;  // which counts as kept
    const auto load = [&] {
      const auto loaded = Load(file);
      if (loaded.ok()) data = *loaded;
      return loaded.ok();
    };
    return MemoryInChild(load, [&] {
      std::vector<int64_t> rows(1000);
      Batch batch;
      for (int64_t first = 0; first + 1000 <= data->rows(); first += 1000) {
        std::iota(rows.begin(), rows.end(), first);
        data->Gather(rows, batch);
      }
    });
  };
  int64_t highest[2] = {};
  const std::string header = "y,c,a,b,w\n", block = Table(100'000).substr(header.size());
  for (const int rows : {500'000, 1'000'000}) {
    std::string text = header;
    for (int i = 0; i < rows; i += 100'000) text += block;
    Write(text);
    const ChildMemory memory = measure(false), file = measure(true);
    const auto size = static_cast<int64_t>(fs::file_size(root_ / "data" / "x.csv"));
    std::printf(
        "%.0f MB of text: in memory %.0f MiB at most, %.0f MiB kept; in a file %.0f MiB at most, %.1f MiB kept\n",
        static_cast<double>(size) / 1e6, static_cast<double>(memory.highest) / kMiB,
        static_cast<double>(memory.kept) / kMiB, static_cast<double>(file.highest) / kMiB,
        static_cast<double>(file.kept) / kMiB);
    EXPECT_GT(memory.highest, rows * 28);
    EXPECT_LT(file.kept, 10 * kMiB) << "what the allocator keeps";
    (rows > 500'000 ? highest[1] : highest[0]) = file.highest;
    EXPECT_LT(file.highest, 32 * kMiB);
  }
  EXPECT_LT(highest[1] - highest[0], 8 * kMiB) << "a column of doubles, which is fitted";
}

}  // namespace
}  // namespace medley::worker
