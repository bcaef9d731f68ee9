#include "worker/data/array_dataset.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/unit/worker/data/array_bytes.h"
#include "worker/data/dataset.h"
#include "worker/data/inputs.h"
#include "worker/data/label_values.h"

namespace medley::worker {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

class ArrayDatasetTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("arrays"); }
  void TearDown() override { base::RemoveTempDir(folder_); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  // Three images of 2 x 2 with classes 2, 0, 1.
  model::DataSpec Images() {
    Write("images", IdxBytes(0x08, {3, 2, 2}, std::string("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\xff", 12)));
    Write("labels", IdxBytes(0x08, {3}, std::string("\x02\x00\x01", 3)));
    model::DataSpec spec;
    spec.schema.task = model::Task::kMultiClass;
    spec.train = {.uri = "file:///images", .format = "idx", .labels = "file:///labels"};
    spec.schema.inputs = {{.name = "x", .type = "float32", .shape = {1, 2, 2}}};
    return spec;
  }
  absl::StatusOr<std::shared_ptr<const Dataset>> Load(const model::DataSpec& spec,
                                                      const Transform* transform = nullptr) {
    return Dataset::Load(spec.train, spec, transform, {.root = folder_.string()});
  }
  std::string Error(const model::DataSpec& spec) { return base::Message(Load(spec).status()); }

  std::filesystem::path folder_;
};

TEST_F(ArrayDatasetTest, ReadsImagesWithTheirClasses) {
  model::DataSpec spec = Images();
  spec.schema.inputs[0].scale = 0.5;
  spec.schema.inputs[0].mean = {1};
  spec.schema.inputs[0].deviation = {2};
  const auto data = Load(spec);
  ASSERT_THAT(data, base::IsOk());
  EXPECT_EQ((*data)->rows(), 3);
  EXPECT_EQ((*data)->shape(), (SampleShape{0, 4, 1}));
  EXPECT_THAT((*data)->all().labels, ElementsAre(2, 0, 1));
  EXPECT_THAT((*data)->transform().label.classes, ElementsAre("0", "1", "2"));
  EXPECT_FLOAT_EQ((*data)->all().numerics[0], -0.5F);
  EXPECT_FLOAT_EQ((*data)->all().numerics[11], (127.5F - 1) / 2);
  EXPECT_EQ((*data)->digest().size(), 32U);
  // Every channel has its own mean and deviation.
  spec.schema.inputs[0] = {.name = "x", .type = "float32", .shape = {2, 2}, .mean = {1, 2}, .deviation = {1, 4}};
  const auto channels = Load(spec);
  ASSERT_THAT(channels, base::IsOk());
  EXPECT_THAT(std::vector((*channels)->view().numerics.begin(), (*channels)->view().numerics.begin() + 4),
              ElementsAre(FloatEq(-1), FloatEq(0), FloatEq(0), FloatEq(0.25)));
}

TEST_F(ArrayDatasetTest, SeveralInputsShareARow) {
  Write("tokens.npy", NpyBytes("<i8", "(2, 3)", BytesOf<int64_t>({5, 6, 7, 8, 9, 2147483647})));
  Write("mask.npy", NpyBytes("|b1", "(2, 3)", std::string("\x01\x01\x00\x01\x00\x00", 6)));
  Write("price.npy", NpyBytes("<f8", "(2,)", BytesOf<double>({0.5, -2})));
  Write("y.npy", NpyBytes("<f4", "(2, 2)", BytesOf<float>({1, 2, 3, 4})));
  model::DataSpec spec;
  spec.schema.task = model::Task::kRegression;
  spec.schema.label_count = 2;
  spec.train = {
      .format = "npy",
      .labels = "file:///y.npy",
      .files = {{"tokens", "file:///tokens.npy"}, {"mask", "file:///mask.npy"}, {"price", "file:///price.npy"}}};
  spec.schema.inputs = {{.name = "mask", .type = "int64", .shape = {3}},
                        {.name = "price", .type = "float32"},
                        {.name = "tokens", .type = "int64", .shape = {3}}};
  const auto data = Load(spec);
  ASSERT_THAT(data, base::IsOk());
  EXPECT_EQ((*data)->shape(), (SampleShape{6, 1, 2}));
  EXPECT_THAT((*data)->all().ids, ElementsAre(1, 1, 0, 5, 6, 7, 1, 0, 0, 8, 9, 2147483647));
  EXPECT_THAT((*data)->all().numerics, ElementsAre(0.5F, -2.0F));
  EXPECT_THAT((*data)->all().labels, ElementsAre(1, 2, 3, 4)) << "numbers are not standardised";
  // The model takes them by their names.
  const auto layout = InputLayout({{"tokens", true, {3}}, {"mask", true, {3}}, {"price", false, {}}}, (*data)->shape(),
                                  spec.schema.inputs);
  ASSERT_THAT(layout, base::IsOk());
  EXPECT_EQ((*layout)[0].first, 3);
  EXPECT_EQ((*layout)[1].first, 0);
  EXPECT_EQ((*layout)[2].first, 0);
  const auto refused = [&](std::vector<ModelInput> inputs) {
    return base::Message(InputLayout(inputs, (*data)->shape(), spec.schema.inputs).status());
  };
  EXPECT_THAT(refused({{"tokens", true, {3}}, {"mask", true, {3}}}), HasSubstr("does not take all"));
  EXPECT_THAT(refused({{"words", true, {3}}}), HasSubstr("there is none for 'words'"));
  EXPECT_THAT(refused({{"tokens", true, {4}}}), HasSubstr("another type or shape has 'tokens'"));
  EXPECT_THAT(refused({{"tokens", false, {3}}}), HasSubstr("another type or shape has 'tokens'"));
}

TEST_F(ArrayDatasetTest, EachTokenHasAClassOrNone) {
  Write("tokens.npy", NpyBytes("<i8", "(2, 3)", BytesOf<int64_t>({5, 6, 7, 8, 9, 1})));
  Write("y.npy", NpyBytes("<i8", "(2, 3)", BytesOf<int64_t>({0, -100, 2, 1, -100, -100})));
  model::DataSpec spec;
  spec.schema.task = model::Task::kMultiClass;
  spec.schema.label_count = 3;
  spec.train = {.uri = "file:///tokens.npy", .format = "npy", .labels = "file:///y.npy"};
  spec.schema.inputs = {{.name = "tokens", .type = "int64", .shape = {3}}};
  const auto data = Load(spec);
  ASSERT_THAT(data, base::IsOk());
  EXPECT_EQ((*data)->shape(), (SampleShape{3, 0, 3}));
  EXPECT_THAT((*data)->all().labels, ElementsAre(0, kNoLabel, 2, 1, kNoLabel, kNoLabel));
  EXPECT_THAT((*data)->transform().label.classes, ElementsAre("0", "1", "2"));
  Write("y.npy", NpyBytes("<i8", "(2, 3)", BytesOf<int64_t>({0, -1, 2, 1, 0, 0})));
  EXPECT_THAT(Error(spec), HasSubstr("label 1 is -1"));
  // Without their number, the error says where it goes.
  spec.schema.label_count = 1;
  EXPECT_THAT(Error(spec), HasSubstr("spec.data.schema.label.count"));
}

TEST_F(ArrayDatasetTest, ReadsRecordsAndShards) {
  Write("part-1", BytesOf<float>({1, 2, 3, 4}));
  Write("part-2", BytesOf<float>({5, 6}));
  Write("labels", std::string("\x01\x00\x01", 3));
  model::DataSpec spec;
  spec.train = {.uri = "file:///part-*", .format = "raw", .labels = "file:///labels"};
  spec.schema.inputs = {{.name = "x", .type = "float32", .shape = {2}}};
  const auto data = Load(spec);
  ASSERT_THAT(data, base::IsOk());
  EXPECT_THAT((*data)->all().numerics, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT((*data)->all().labels, ElementsAre(1, 0, 1));
  Write("part-2", BytesOf<float>({5, 6, 7}));
  EXPECT_THAT(Error(spec), HasSubstr("part-2: after 1 samples of 8 bytes, 4 bytes are left over"));
  spec.schema.inputs[0].storage = "uint8";
  EXPECT_THAT(Error(spec), HasSubstr("has 14 samples, but"));
}

TEST_F(ArrayDatasetTest, OwnLossHasNoLabels) {
  model::DataSpec spec = Images();
  spec.schema.task = model::Task::kOwnLoss;
  spec.train.labels.clear();
  const auto data = Load(spec);
  ASSERT_THAT(data, base::IsOk());
  EXPECT_THAT((*data)->all().labels, ElementsAre(0, 0, 0));
}

TEST_F(ArrayDatasetTest, RefusesWhatDoesNotFit) {
  model::DataSpec spec = Images();
  spec.schema.inputs[0].shape = {3, 2, 2};
  EXPECT_THAT(Error(spec), HasSubstr("input 'x': "));
  EXPECT_THAT(Error(spec), HasSubstr("images: its samples have the shape [2, 2], but [3, 2, 2] is expected"));
  spec = Images();
  Write("labels", IdxBytes(0x08, {2}, std::string("\x02\x00", 2)));
  EXPECT_THAT(Error(spec), HasSubstr("images: has 3 samples, but"));
  spec = Images();
  Write("labels", IdxBytes(0x08, {3}, std::string("\x02\x02\x02", 3)));
  EXPECT_THAT(Error(spec), HasSubstr("the labels of all samples are equal (2)"));
  Transform fitted;
  fitted.label.classes = {"0", "1", "2"};
  EXPECT_THAT(Load(spec, &fitted), base::IsOk()) << "a test set may have one class only";
  fitted.label.classes = {"0", "1"};
  EXPECT_THAT(base::Message(Load(spec, &fitted).status()),
              HasSubstr("label 0 is 2, which is not the number of one of 2"));
  EXPECT_THAT(base::Message(CheckLabels(spec.train, spec, fitted.label.classes, folder_.string(), {})),
              HasSubstr("label 0 is 2"));
  spec = Images();
  spec.schema.task = model::Task::kBinary;
  EXPECT_THAT(Error(spec), HasSubstr("label 0 is 2, which is not 0 or 1"));
  spec = Images();
  Write("images", IdxBytes(0x08, {4, 2, 2}, std::string(12, 'a')));
  EXPECT_THAT(Error(spec), HasSubstr("images: it ends after 3 of the 4 samples of its header"));
  Write("images", IdxBytes(0x08, {2, 2, 2}, std::string(12, 'a')));
  EXPECT_THAT(Error(spec), HasSubstr("images: it has more than the 2 samples of its header"));
  Write("images", IdxBytes(0x0d, {3, 2, 2}, std::string(47, '\x7f') + '\x7f'));
  EXPECT_THAT(Error(spec), testing::AnyOf(HasSubstr("is not finite"), testing::IsEmpty()));
  Write("images", IdxBytes(0x0d, {3, 2, 2}, BytesOf<uint32_t>(std::vector<uint32_t>(12, 0x0000c07f))));
  EXPECT_THAT(Error(spec), HasSubstr("number 0 of sample 0 is nan, which is not finite"));
  spec.schema.inputs[0].type = "int64";
  Write("images", IdxBytes(0x0c, {3, 2, 2}, std::string(48, '\xff')));
  EXPECT_THAT(Error(spec), HasSubstr("number 0 of sample 0 is -1, which is no whole number from 0"));
  std::filesystem::remove(folder_ / "images");
  EXPECT_EQ(Load(spec).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ArrayDatasetTest, MoreThanAnyMemoryHoldsIsRefused) {
  std::string labels;
  for (int i = 0; i < 3'000'000; ++i) labels += static_cast<char>(i % 2);
  Write("labels", labels);
  Write("images", "x");
  model::DataSpec spec;
  spec.train = {.uri = "file:///images", .format = "raw", .labels = "file:///labels"};
  spec.schema.inputs = {{.name = "x", .type = "float32", .shape = {4096, 4096}}};
  EXPECT_EQ(Load(spec).status().code(), absl::StatusCode::kOutOfRange) << "a retry would not help";
  EXPECT_THAT(Error(spec), HasSubstr("there is no memory for 50331648000000 numbers"));
}

TEST_F(ArrayDatasetTest, ReadsMnist) {
  model::DataSpec spec = Images();
  spec.train = {
      .uri = "file:///train-images-idx3-ubyte.gz", .format = "idx", .labels = "file:///train-labels-idx1-ubyte.gz"};
  spec.schema.inputs[0].shape = {1, 28, 28};
  const std::string folder = std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/examples/lenet";
  const auto data = Dataset::Load(spec.train, spec, nullptr, {.root = folder});
  ASSERT_THAT(data, base::IsOk());
  EXPECT_EQ((*data)->rows(), 60000);
  EXPECT_THAT(std::vector((*data)->view().labels.begin(), (*data)->view().labels.begin() + 5),
              ElementsAre(5, 0, 4, 1, 9));
  double sum = 0;
  for (const float x : (*data)->view().numerics) sum += static_cast<double>(x);
  EXPECT_NEAR(sum / 60000 / 784 / 255, 0.1307, 1e-4);
}

}  // namespace
}  // namespace medley::worker
