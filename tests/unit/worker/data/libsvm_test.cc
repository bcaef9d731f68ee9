#include "worker/data/libsvm.h"

#include <gmock/gmock.h>

#include <fstream>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/data/dataset.h"
#include "worker/data/label_values.h"
#include "worker/data/record.h"

namespace medley::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> LibsvmFields(std::string_view line, size_t columns = 0) {
  CsvFields fields;
  const absl::Status status = SplitLibsvm(line, columns, fields);
  if (!status.ok()) return {base::Message(status)};
  return {fields.values.begin(), fields.values.end()};
}

TEST(LibsvmTest, FeaturesThatALineDoesNotNameAreZero) {
  EXPECT_THAT(LibsvmFields("+1 2:0.5 4:-3e2"), ElementsAre("+1", "0", "0.5", "0", "-3e2"));
  EXPECT_THAT(LibsvmFields("  -1\t1:2 \r"), ElementsAre("-1", "2"));
  EXPECT_THAT(LibsvmFields("3"), ElementsAre("3"));
  EXPECT_THAT(LibsvmFields("1 2:5 3:7 9:1", 4), ElementsAre("1", "0", "5", "7")) << "more are not asked for";
  EXPECT_THAT(LibsvmFields("1 qid:7 1:5 # a comment 2:3", 3), ElementsAre("1", "5", "0"));
  EXPECT_THAT(LibsvmFields("1 3:c 1:a 2:b"), ElementsAre("1", "a", "b", "c")) << "in any order";
}

TEST(LibsvmTest, RefusesWordsThatAreNotFeatures) {
  EXPECT_THAT(LibsvmFields("1 x:1")[0], HasSubstr("'x:1' is not INDEX:VALUE"));
  EXPECT_THAT(LibsvmFields("1 2")[0], HasSubstr("'2' is not INDEX:VALUE"));
  EXPECT_THAT(LibsvmFields("1 2:")[0], HasSubstr("'2:' is not INDEX:VALUE"));
  EXPECT_THAT(LibsvmFields("1 -2:1")[0], HasSubstr("is not INDEX:VALUE"));
  EXPECT_THAT(LibsvmFields("1 0:1")[0], HasSubstr("count from 1 here, not from 0"));
  EXPECT_THAT(LibsvmFields("1 99999999999999999999:1")[0], HasSubstr("is not INDEX:VALUE"));
  EXPECT_THAT(LibsvmFields("1 2000000000:1", 3)[0], HasSubstr("an index is at most"));
  EXPECT_THAT(LibsvmFields("1 70000:1")[0], HasSubstr("more than 65536 columns"));
  EXPECT_THAT(LibsvmFields("1:5 2:1")[0], HasSubstr("begins with '1:5', not with a label"));
  EXPECT_THAT(LibsvmFields("1 3:1 2:1 3:2")[0], HasSubstr("the index 3 twice"));
  EXPECT_THAT(LibsvmFields("1 9:1 9:2", 3)[0], HasSubstr("the index 9 twice")) << "also beyond the columns";
}

TEST(LibsvmTest, AFileIsRecognisedByItsFirstLines) {
  EXPECT_TRUE(LooksLikeLibsvm("1 1:2\n-1 3:4\n", true));
  EXPECT_TRUE(LooksLikeLibsvm("# made by hand\n1\n\n0 1:2", true));
  EXPECT_TRUE(LooksLikeLibsvm("1 1:2\n-1 3:4\n1 5:", false)) << "the last line is cut";
  EXPECT_FALSE(LooksLikeLibsvm("1 1:2\n-1 3:4\n1 5:", true));
  EXPECT_FALSE(LooksLikeLibsvm("a,b\n1,2\n", true));
  EXPECT_FALSE(LooksLikeLibsvm("12:30\n13:45\n", true)) << "times";
  EXPECT_FALSE(LooksLikeLibsvm("1\n2\n", true)) << "a column of numbers";
}

class LibsvmFileTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("libsvm"); }
  void TearDown() override { base::RemoveTempDir(folder_); }
  absl::StatusOr<std::shared_ptr<const Dataset>> Load(const std::string& name, const std::string& format,
                                                      int64_t bad = 0) {
    model::DataSpec spec;
    spec.schema.label_column = 0;
    spec.schema.label_positive = "+1";
    spec.schema.numeric = {1, 2};
    spec.schema.categorical = {3};
    spec.max_bad_rows = bad;
    const model::SourceSpec source{"file:///" + name, format};
    EXPECT_THAT(CheckLabels(source, spec, {}, folder_.string(), {}), base::IsOk());
    return Dataset::Load(source, spec, nullptr, {.embedding_rows = 100, .threads = 2, .root = folder_.string()});
  }
  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }

  std::filesystem::path folder_;
};

TEST_F(LibsvmFileTest, HasTheSamplesOfTheSameTableInCsv) {
  std::string pairs = "# label and three features\n", table;
  for (int i = 0; i < 100'000; ++i) {
    const int a = i * 7 % 11, b = i * 13 % 5, c = i % 3;
    pairs += i % 2 == 0 ? "+1" : "-1";
    table += std::string(i % 2 == 0 ? "+1" : "-1") + "," + std::to_string(a) + "," + std::to_string(b) + "," +
             std::to_string(c) + "\n";
    if (a != 0) pairs += " 1:" + std::to_string(a);
    if (c != 0) pairs += " 3:" + std::to_string(c);
    if (b != 0) pairs += " 2:" + std::to_string(b);
    pairs += i % 1000 == 0 ? " 77:\"quote\n\n" : "\n";
  }
  Write("x.libsvm", pairs);
  Write("x.csv", table);
  const auto from_pairs = Load("x.libsvm", "libsvm"), from_table = Load("x.csv", "csv");
  ASSERT_THAT(from_pairs, base::IsOk());
  ASSERT_THAT(from_table, base::IsOk());
  EXPECT_EQ((*from_pairs)->digest(), (*from_table)->digest());
}

TEST_F(LibsvmFileTest, ABadLineIsCountedOrNamed) {
  Write("x.libsvm", "+1 1:2\n-1 1:x\n-1 2:3\n+1 0:1\n");
  EXPECT_THAT(base::Message(Load("x.libsvm", "libsvm").status()),
              HasSubstr("x.libsvm:2: column 1: 'x' is not a number"));
  const auto data = Load("x.libsvm", "libsvm", 2);
  ASSERT_THAT(data, base::IsOk());
  EXPECT_EQ((*data)->rows(), 2);
}

}  // namespace
}  // namespace medley::worker
