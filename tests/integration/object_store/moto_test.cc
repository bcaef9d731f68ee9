// The client, and a job's folder in an object store, against moto: a server of S3 that others have written, over TLS.
// It speaks for gs:// too, whose requests with HMAC keys are of the same protocol.
//
// Exit status 77, which is reported as skipped, where the server is not installed: ./dev setup objects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/certificates/certificates.h"
#include "common/http_client/connection.h"
#include "common/object_store/object_writer.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/store.h"
#include "worker/checkpoint/writer.h"
#include "worker/claim/claims.h"
#include "worker/object_files/open_volume.h"

namespace medley::object_store {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kNotInstalled = 77;

// moto's server with a certificate of an own CA. It takes every key, and says so if the bucket does not exist.
class Moto {
 public:
  Moto() : folder_(*base::MakeTempDir("moto")) {
    setenv("no_proxy", "localhost", 1);
    const base::WallTime now = base::SystemClock().Now();
    const certificates::Validity day{now - std::chrono::hours(1), now + std::chrono::hours(24)};
    const auto authority = certificates::MakeAuthority("CA of a test", "localhost", day);
    const auto own = certificates::Issue(*authority, {"localhost"}, day);
    authority_ = authority->certificate;
    const std::string certificate = folder_ / "tls.crt", key = folder_ / "tls.key";
    EXPECT_THAT(base::WriteFileAtomic(certificate, own->certificate), IsOk());
    EXPECT_THAT(base::WriteFileAtomic(key, own->key), IsOk());
    int out[2] = {-1, -1};
    EXPECT_EQ(pipe(out), 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(out[1], STDERR_FILENO);
      setenv("PYTHONPATH", MEDLEY_MOTO, 1);
      execl("/usr/bin/python3", "python3", "-B", "-m", "moto.server", "-H", "localhost", "-p", "0", "-s", "-c",
            certificate.c_str(), "-k", key.c_str(), nullptr);
      _exit(127);
    }
    close(out[1]);
    lines_ = fdopen(out[0], "r");
    char line[512];
    while (port_ == 0 && std::fgets(line, sizeof line, lines_) != nullptr) {
      const char* const at = std::strstr(line, "https://localhost:");
      if (at != nullptr) port_ = std::atoi(at + std::strlen("https://localhost:"));
    }
    EXPECT_GT(port_, 0) << "moto did not start";
    // It says each request, which must be read.
    reader_ = std::jthread([this] {
      char rest[512];
      while (std::fgets(rest, sizeof rest, lines_) != nullptr) {
      }
    });
    http_client::Connection connection({.user_agent = "test", .authorities = authority_});
    const http_client::Result made =
        connection.Run({.method = "PUT", .url = endpoint() + "/bucket", .body = ""}, "making a bucket", {});
    EXPECT_EQ(made.response.code, 200) << made.status;
  }
  ~Moto() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    if (reader_.joinable()) reader_.join();
    std::fclose(lines_);
    base::RemoveTempDir(folder_);
  }
  std::string endpoint() const { return "https://localhost:" + std::to_string(port_); }
  std::optional<std::string> Variable(const std::string& name) const {
    if (name == "AWS_ENDPOINT_URL" || name == "GS_ENDPOINT_URL") return endpoint();
    if (name == "MEDLEY_S3_PATH_STYLE") return "1";
    if (name == "MEDLEY_STORAGE_CA") return authority_;
    if (name.ends_with("ACCESS_KEY_ID")) return "key";
    if (name.ends_with("SECRET_ACCESS_KEY")) return "secret";
    return std::nullopt;
  }
  GetVariable variables() const {
    return [this](const char* name) { return Variable(name); };
  }

 private:
  const std::filesystem::path folder_;
  std::string authority_;
  pid_t pid_ = -1;
  int port_ = 0;
  std::FILE* lines_ = nullptr;
  std::jthread reader_;
};

Moto& Server() {
  static Moto server;
  return server;
}

class MotoTest : public testing::TestWithParam<const char*> {
 protected:
  // Both schemes have the bucket.
  static std::string Root() {
    const std::string scheme = GetParam();
    return scheme + "bucket/" + scheme.substr(0, 2) + "/";
  }
  Location At(const std::string& key) const { return *ParseLocation(Root() + key); }
  std::string ReadWhole(const Location& at) {
    const absl::StatusOr<ObjectInfo> info = store_.Stat(at, {});
    EXPECT_THAT(info.status(), IsOk());
    return info.ok() ? store_.Read(at, *info, 0, info->bytes, {}).value_or("?") : "";
  }

  base::SystemClock clock_;
  ObjectStore store_{*ReadSettings(Server().variables()), clock_, 1};
};

TEST_P(MotoTest, ObjectsAreWrittenListedCopiedAndRemoved) {
  const std::string name = "dir/a b+c%d.csv";
  ASSERT_THAT(store_.Put(At(name), "content", {}), IsOk());
  ASSERT_THAT(store_.Put(At("dir/deep/one"), "1", {}), IsOk());
  EXPECT_EQ(ReadWhole(At(name)), "content");
  const auto listing = store_.List(At("dir/"), true, {});
  ASSERT_THAT(listing.status(), IsOk());
  ASSERT_EQ(listing->objects.size(), 1U);
  EXPECT_EQ(listing->objects[0].key, At(name).key);
  EXPECT_THAT(listing->folders, ElementsAre(At("dir/deep/").key));
  ASSERT_THAT(store_.Copy(At(name), At("copy"), {}), IsOk());
  EXPECT_EQ(ReadWhole(At("copy")), "content");
  for (const char* each : {"copy", "dir/a b+c%d.csv", "dir/deep/one"}) EXPECT_THAT(store_.Remove(At(each), {}), IsOk());
  EXPECT_THAT(store_.Stat(At("copy"), {}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_.List(*ParseLocation(std::string(GetParam()) + "no-such-bucket/"), true, {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("the bucket does not exist")));
}

// S3 refuses parts below 5 MiB.
TEST_P(MotoTest, AnUploadInPartsIsListedUntilItEnds) {
  std::string content(20 << 20, 'a');
  for (size_t i = 0; i < content.size(); i += 1000) content[i] = static_cast<char>('a' + i / 1000 % 26);
  {
    ObjectWriter writer(store_, At("big/object"));
    for (size_t at = 0; at < content.size(); at += 1 << 20) {
      ASSERT_THAT(writer.Add(std::string_view(content).substr(at, 1 << 20), {}), IsOk());
    }
    const auto uploads = store_.ListUploads(At("big/"), {});
    ASSERT_THAT(uploads.status(), IsOk());
    ASSERT_EQ(uploads->size(), 1U);
    EXPECT_EQ((*uploads)[0].key, At("big/object").key);
    EXPECT_THAT(store_.Stat(At("big/object"), {}), StatusIs(absl::StatusCode::kNotFound));
    ASSERT_THAT(writer.Finish({}), IsOk());
  }
  EXPECT_EQ(ReadWhole(At("big/object")), content);
  {
    ObjectWriter dropped(store_, At("big/other"));
    ASSERT_THAT(dropped.Add(content, {}), IsOk());
  }
  EXPECT_TRUE(store_.ListUploads(At("big/"), {})->empty());
  const StartedUpload left = *store_.BeginUpload(At("big/left"), {});
  ASSERT_THAT(store_.EndUpload(At("big/left"), left.id, {}), IsOk());
  EXPECT_THAT(store_.EndUpload(At("big/left"), left.id, {}), IsOk()) << "it has ended before";
}

TEST_P(MotoTest, AJobsFolderIsAsOnAVolume) {
  const std::string root = Root() + "jobs/one";
  const worker::Volume volume = *worker::OpenVolume(root, Server().variables());
  ASSERT_THAT(worker::CheckRights(volume), IsOk());
  const worker::Claims claims(volume);
  ASSERT_THAT(claims.Take(1, "a:1", "x").status(), IsOk());
  const worker::Claim second = *claims.Take(2, "b:1", "y");
  EXPECT_THAT(claims.Check({1, "a:1", 1, "x"}), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(claims.Check(second), IsOk());
  worker::CheckpointStore checkpoints(volume, "uid");
  for (const int64_t step : {10, 20, 30}) {
    worker::CheckpointManifest manifest{.job_uid = "uid",
                                        .model_fingerprint = "f",
                                        .generation = 1,
                                        .step = step,
                                        .rows = 100,
                                        .data_epochs = 3,
                                        .batch_size = 10};
    manifest.folder = worker::CheckpointFolder({.generation = 1, .step = step});
    worker::CheckpointFileHeader header;
    header.owner = {"uid", "f"};
    header.generation = 1;
    header.step = step;
    auto writer = *worker::CheckpointWriter::Create(volume, manifest.folder, header);
    const std::vector<float> weights(3'000'000, static_cast<float>(step));  // two parts
    ASSERT_THAT(writer->AddDense(0, "weight", weights, {}), IsOk());
    manifest.files.push_back(*writer->Finish());
    ASSERT_THAT(checkpoints.Complete(manifest), IsOk());
    ASSERT_THAT(checkpoints.Prune(2), IsOk());
  }
  EXPECT_EQ(worker::ListCheckpointFolders(volume)->size(), 2U);
  const auto found = worker::FindCheckpoint(volume, "uid", "f");
  ASSERT_THAT(found.status(), IsOk());
  ASSERT_TRUE(found->manifest);
  EXPECT_EQ(found->manifest->step, 30);
}

INSTANTIATE_TEST_SUITE_P(Schemes, MotoTest, testing::Values("s3://", "gs://"),
                         [](const auto& each) { return std::string(each.param).substr(0, 2); });

}  // namespace
}  // namespace medley::object_store

int main(int argc, char** argv) {
  if (std::string_view(MEDLEY_MOTO).empty()) {
    std::printf("NOT TESTED: object stores against moto, which ./dev setup objects installs\n");
    return medley::object_store::kNotInstalled;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
