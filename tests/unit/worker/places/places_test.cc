#include "worker/places/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/unit/worker/places/fake_store.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

object_store::Settings InPath() {
  object_store::Settings settings;
  settings.path_style = true;
  return settings;
}

class PlacesTest : public testing::Test {
 protected:
  PlacesTest() : root_(*base::MakeTempDir("places-test")) {}
  ~PlacesTest() override { base::RemoveTempDir(root_); }

  const std::filesystem::path root_;
  base::SystemClock clock_;
  FakeStore server_;
  object_store::ObjectStore store_{InPath(), clock_, 1, {.attempts = 1}, server_.exchange()};
  Places places_{{.cache = root_ / "cache", .cache_bytes = 1 << 20}, store_, clock_};
};

TEST_F(PlacesTest, DataBecomeFilesAndFilesStayThem) {
  server_.Put("bucket/train/part-1.csv", "1");
  server_.Put("bucket/labels.npy", "2");
  server_.Put("bucket/images.npy", "3");
  model::DataSpec data;
  data.train = {.uri = "s3://bucket/train/*.csv", .format = "csv"};
  data.validation.emplace().source = {
      .format = "npy", .labels = "s3://bucket/labels.npy", .files = {{"image", "s3://bucket/images.npy"}}};
  data.test = {.uri = "file:///data/test.csv", .format = "csv"};
  ASSERT_THAT(places_.CopyData(data, {}), IsOk());
  EXPECT_THAT(data.train.uri, AllOf(StartsWith("file:///"), EndsWith("/s3:/bucket/train/*.csv")));
  EXPECT_EQ(*base::ReadFile(data.validation->source.labels.substr(7)), "2");
  EXPECT_EQ(*base::ReadFile(data.validation->source.files["image"].substr(7)), "3");
  EXPECT_EQ(data.test->uri, "file:///data/test.csv");
  const std::string before = data.train.uri;
  ASSERT_THAT(places_.CopyData(data, {}), IsOk());
  EXPECT_EQ(data.train.uri, before) << "a copy is not copied";
}

TEST_F(PlacesTest, AFolderOfAModelIsAFolder) {
  server_.Put("bucket/best/export/model.json", "{}");
  server_.Put("bucket/best/export/weights.safetensors", "w");
  model::JobSpec spec;
  spec.model.initial_from = "s3://bucket/best/export/";
  ASSERT_THAT(places_.CopyModel(spec, {}), IsOk());
  EXPECT_EQ(*base::ReadFile(spec.model.initial_from + "/weights.safetensors"), "w");
}

TEST_F(PlacesTest, AnErrorNamesTheFieldAndTheObject) {
  model::DataSpec data;
  data.train.uri = "s3://bucket/none.csv";
  const absl::Status status = places_.CopyData(data, {});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(base::Message(status), AllOf(StartsWith("spec.data.train.uri: "), HasSubstr("s3://bucket/none.csv")));
}

TEST_F(PlacesTest, OnlySpecsThatNameObjectsNeedAStore) {
  model::JobSpec spec;
  spec.data.train.uri = "file:///data/x.csv";
  EXPECT_FALSE(HasRemotePlaces(spec));
  spec.data.test = model::SourceSpec{.uri = "gs://bucket/x.csv", .format = "csv"};
  EXPECT_TRUE(HasRemotePlaces(spec));
  spec.data.test.reset();
  spec.model.initial_from = "s3://bucket/export";
  EXPECT_TRUE(HasRemotePlaces(spec));
}

TEST_F(PlacesTest, RefusesABudgetThatIsNotANumber) {
  const auto get = [](const char* name) {
    return std::string(name) == "MEDLEY_CACHE_BYTES" ? std::optional<std::string>("1GB") : std::nullopt;
  };
  EXPECT_THAT(Places::Make(get, {.cache = root_}, clock_), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace medley::worker
