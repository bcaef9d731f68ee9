// What a process reads from its environment.
#include "worker/app/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/certificates/job_certificates.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;

class EnvironmentTest : public testing::Test {
 protected:
  EnvironmentTest() : folder_(base::MakeTempDir("medley-environment").value()) {
    const std::string spec = R"({"model": {"name": "mlp"},
        "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
                 "schema": {"label": {"column": 1, "positive": "1"}, "numeric": [0]}}})";
    EXPECT_THAT(base::WriteFileAtomic(folder_ / "spec.json", spec), IsOk());
    variables_["MEDLEY_SPEC_FILE"] = (folder_ / "spec.json").string();
  }
  ~EnvironmentTest() override { base::RemoveTempDir(folder_); }

  absl::StatusOr<Environment> Read(Need need = Need::kSpec) {
    const auto get = [this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
    return ReadEnvironment(get, need);
  }

  const std::filesystem::path folder_;
  std::map<std::string, std::string> variables_;
};

TEST_F(EnvironmentTest, ChoosesTheDevice) {
  const auto standard = Read();
  ASSERT_THAT(standard, IsOk());
  EXPECT_EQ(standard->device, DeviceChoice::kAuto);
  const std::map<std::string, DeviceChoice> known = {
      {"auto", DeviceChoice::kAuto}, {"cpu", DeviceChoice::kCpu}, {"cuda", DeviceChoice::kCuda}};
  for (const auto& [value, expected] : known) {
    variables_["MEDLEY_DEVICE"] = value;
    const auto read = Read();
    ASSERT_THAT(read, IsOk()) << value;
    EXPECT_EQ(read->device, expected) << value;
  }
  variables_["MEDLEY_DEVICE"] = "tpu";
  EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("auto, cpu or cuda, is 'tpu'")));
}

TEST_F(EnvironmentTest, KnowsHowLongToMeasure) {
  EXPECT_EQ(Read()->profile_time, base::seconds(6));
  variables_["MEDLEY_PROFILE_TIME"] = "1500ms";
  EXPECT_EQ(Read()->profile_time, base::milliseconds(1500));
  for (const char* wrong : {"1", "-1s", "0s", "11m", "soon"}) {
    variables_["MEDLEY_PROFILE_TIME"] = wrong;
    EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("MEDLEY_PROFILE_TIME: ")))
        << wrong;
  }
}

TEST_F(EnvironmentTest, KnowsWhichSizesOfAProgramToMeasure) {
  EXPECT_THAT(Read()->profile_sizes, testing::IsEmpty());
  variables_["MEDLEY_PROFILE_SIZES"] = "2,16";
  EXPECT_THAT(Read()->profile_sizes, testing::ElementsAre(2, 16));
  for (const char* wrong : {"1", "2,,4", "-2", "65", "2;4", "two"}) {
    variables_["MEDLEY_PROFILE_SIZES"] = wrong;
    EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("MEDLEY_PROFILE_SIZES: ")))
        << wrong;
  }
}

TEST_F(EnvironmentTest, PathsOfTheSpecAreThoseOfThisMachine) {
  variables_["MEDLEY_PATH_MAP"] = "/data=/home/me/files";
  const auto csv = Read();
  ASSERT_THAT(csv, IsOk());
  EXPECT_EQ(csv->spec.data.train.uri, "file:///home/me/files/train.csv");
  EXPECT_THAT(csv->spec_json, testing::HasSubstr("file:///home/me/files/train.csv"));
  const std::string spec = R"({"model": {"task": "regression", "torchScript": {"uri": "file:///data/m.pt"}},
      "data": {"train": {"files": {"x": "file:///data/x.npy"}, "labels": "file:///data/y.npy", "format": "npy"},
               "validation": {"files": {"x": "file:///data/v.npy"}, "labels": "file:///other/w.npy", "format": "npy"},
               "inputs": [{"name": "x", "type": "float32"}]}})";
  EXPECT_THAT(base::WriteFileAtomic(folder_ / "spec.json", spec), IsOk());
  const auto arrays = Read();
  ASSERT_THAT(arrays, IsOk());
  EXPECT_EQ(arrays->spec.model.torchscript_uri, "file:///home/me/files/m.pt");
  EXPECT_EQ(arrays->spec.data.train.files.at("x"), "file:///home/me/files/x.npy");
  EXPECT_EQ(arrays->spec.data.train.labels, "file:///home/me/files/y.npy");
  EXPECT_EQ(arrays->spec.data.validation->source.files.at("x"), "file:///home/me/files/v.npy");
  EXPECT_EQ(arrays->spec.data.validation->source.labels, "file:///other/w.npy");
  // What begins with a model or a checkpoint. The map is applied once, also where it maps what it gives.
  variables_["MEDLEY_PATH_MAP"] = "/data=/data/mine";
  const std::string begun = R"({"model": {"name": "logistic", "initialFrom": "/data/model"},
      "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
               "schema": {"label": {"column": 0}, "categorical": [1]}},
      "checkpoint": {"from": "file:///data/before",
                     "volume": {"mountPath": "/checkpoints", "hostPath": {"path": "/data/here"}}}})";
  EXPECT_THAT(base::WriteFileAtomic(folder_ / "spec.json", begun), IsOk());
  const auto job = Read();
  ASSERT_THAT(job, IsOk());
  EXPECT_EQ(job->spec.model.initial_from, "/data/mine/model");
  EXPECT_EQ(job->spec.checkpoint.from, "file:///data/mine/before");
  EXPECT_EQ(job->continue_from, "/data/mine/before");
  EXPECT_EQ(job->spec.data.train.uri, "file:///data/mine/train.csv");
  EXPECT_THAT(job->spec_json, testing::HasSubstr("/data/here")) << "a path of the node";
}

TEST_F(EnvironmentTest, SwitchesAreZeroOrOne) {
  const auto standard = Read();
  ASSERT_THAT(standard, IsOk());
  EXPECT_TRUE(standard->share_memory);
  EXPECT_FALSE(standard->plain_nccl);
  EXPECT_TRUE(standard->graphs);
  EXPECT_FALSE(standard->rows_ahead.has_value()) << "it depends on the device";
  variables_ = {{"MEDLEY_SPEC_FILE", variables_["MEDLEY_SPEC_FILE"]},
                {"MEDLEY_SHARE_MEMORY", "0"},
                {"MEDLEY_PLAIN_NCCL", "1"},
                {"MEDLEY_GRAPHS", "0"},
                {"MEDLEY_ROWS_AHEAD", "1"}};
  const auto read = Read();
  ASSERT_THAT(read, IsOk());
  EXPECT_FALSE(read->share_memory);
  EXPECT_TRUE(read->plain_nccl);
  EXPECT_FALSE(read->graphs);
  EXPECT_EQ(read->rows_ahead, true);
  for (const char* name : {"MEDLEY_SHARE_MEMORY", "MEDLEY_PLAIN_NCCL", "MEDLEY_GRAPHS", "MEDLEY_ROWS_AHEAD"}) {
    auto& value = variables_[name];
    const std::string before = std::exchange(value, "yes");
    EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 testing::HasSubstr(std::string(name) + ": must be 0 or 1, is 'yes'")));
    value = before;
  }
}

TEST_F(EnvironmentTest, AUnitHasAPartOfItsDevice) {
  EXPECT_EQ(Read()->device_memory, 0) << "all of it";
  variables_["MEDLEY_DEVICE_MEMORY"] = "85899345920";
  EXPECT_EQ(Read()->device_memory, int64_t{80} << 30);
  for (const char* wrong : {"80Gi", "0", "-1"}) {
    variables_["MEDLEY_DEVICE_MEMORY"] = wrong;
    EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("MEDLEY_DEVICE_MEMORY: ")));
  }
}

// Who may delete and create Secrets in the job's namespace can put another in the place of the job's.
TEST_F(EnvironmentTest, TakesTheCredentialsOfTheOperatorOnly) {
  const auto write = [&](const char* name, const char* text) {
    EXPECT_THAT(base::WriteFileAtomic(folder_ / name, text), IsOk());
  };
  for (const auto& [name, value] : {std::pair{"MEDLEY_JOB_UID", "uid"}, std::pair{"MEDLEY_POD_IP", "127.0.0.1"}}) {
    variables_[name] = value;
  }
  variables_["MEDLEY_CREDENTIALS_DIR"] = folder_.string();
  write("token", "secret");
  EXPECT_THAT(Read(Need::kCoordinator), IsOk()) << "of a pod that an earlier operator made";
  write("ca.crt", "certificate");
  write("ca.key", "key");
  variables_["MEDLEY_CREDENTIALS_FINGERPRINT"] = certificates::CredentialsFingerprint("secret", "key");
  EXPECT_THAT(Read(Need::kCoordinator), IsOk());
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition, testing::HasSubstr("Secret was replaced"));
  write("token", "theirs");
  EXPECT_THAT(Read(Need::kCoordinator), refused);
  write("token", "secret");
  write("ca.key", "theirs");
  EXPECT_THAT(Read(Need::kCoordinator), refused);
  // Without a CA the job would talk in plain text.
  std::filesystem::remove(folder_ / "ca.key");
  std::filesystem::remove(folder_ / "ca.crt");
  EXPECT_THAT(Read(Need::kCoordinator), refused);
}

}  // namespace
}  // namespace medley::worker
