#include "worker/file_server/file_server.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/base/hasher.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

class TextSink final : public http_server::BodySink {
 public:
  bool Write(std::string_view bytes) override {
    text += bytes;
    return true;
  }
  bool Alive() override { return true; }
  void Abort() override { aborted = true; }
  std::string text;
  bool aborted = false;
};

class FileServerTest : public testing::Test {
 protected:
  FileServerTest() {
    fs::create_directories(folder_ / "export/numpy");
    EXPECT_THAT(base::WriteFileAtomic(folder_ / "export/model.json", "{}"), base::IsOk());
    EXPECT_THAT(base::WriteFileAtomic(folder_ / "export/numpy/big.npy", big_), base::IsOk());
    EXPECT_THAT(base::WriteFileAtomic(folder_ / "journal", "secrets of the job"), base::IsOk());
    fs::create_symlink("../journal", folder_ / "export/link");
    fs::create_directory_symlink("/", folder_ / "export/root");
  }
  ~FileServerTest() override { base::RemoveTempDir(folder_); }

  http_server::HttpResponse Ask(const std::string& path, const char* method = "GET") {
    return server_.Respond({.method = method, .path = path});
  }

  const std::string big_ = std::string((size_t{1} << 20) + 3, 'x');
  const fs::path folder_ = *base::MakeTempDir("medley-file-server-test");
  base::FakeClock clock_;
  FileServer server_{folder_ / "export", "5ecret", clock_};
};

TEST_F(FileServerTest, ListsTheRegularFilesWithSizesAndHashes) {
  const auto response = Ask("/5ecret/");
  ASSERT_EQ(response.code, 200);
  const auto list = nlohmann::json::parse(response.body);
  ASSERT_EQ(list["files"].size(), 2U) << response.body;
  EXPECT_EQ(list["files"][0]["path"], "model.json");
  EXPECT_EQ(list["files"][1]["path"], "numpy/big.npy");
  EXPECT_EQ(list["files"][1]["bytes"], std::ssize(big_));
  base::Hasher hash;
  hash.Add(big_);
  EXPECT_EQ(list["files"][1]["xxh3"], hash.Hex());
  EXPECT_EQ(Ask("/5ecret").code, 200);
}

TEST_F(FileServerTest, ServesAFileInPieces) {
  const auto response = Ask("/5ecret/numpy/big.npy");
  ASSERT_EQ(response.code, 200);
  TextSink sink;
  response.stream(sink, {});
  EXPECT_EQ(sink.text, big_);
  EXPECT_FALSE(sink.aborted);
}

TEST_F(FileServerTest, AFileThatVanishesEndsTheAnswerWithAnError) {
  const auto response = Ask("/5ecret/model.json");
  fs::remove(folder_ / "export/model.json");
  TextSink sink;
  response.stream(sink, {});
  EXPECT_TRUE(sink.aborted);
}

TEST_F(FileServerTest, WithoutTheSecretThereIsNothing) {
  clock_.Advance(base::seconds(5));
  for (const char* path : {"/", "", "/5ecre", "/5ecrets/", "/model.json", "//", "/ /model.json"}) {
    EXPECT_EQ(Ask(path).code, 404) << path;
  }
  EXPECT_EQ(clock_.Steady() - server_.last_request(), base::seconds(5)) << "they do not keep the pod alive";
  (void)Ask("/5ecret/");
  EXPECT_EQ(clock_.Steady() - server_.last_request(), base::seconds(0));
}

TEST_F(FileServerTest, NothingOutsideOfTheFolderAndNoLinkIsServed) {
  for (const char* path : {"/5ecret/../journal", "/5ecret/link", "/5ecret/root/etc/passwd", "/5ecret//etc/passwd",
                           "/5ecret/numpy", "/5ecret/numpy/../model.json"}) {
    EXPECT_EQ(Ask(path).code, 404) << path;
  }
  EXPECT_EQ(Ask("/5ecret/model.json", "PUT").code, 405);
}

TEST_F(FileServerTest, AJobWithoutModelIsNotFound) {
  FileServer server(folder_ / "nothing", "s", clock_);
  EXPECT_EQ(server.Respond({.method = "GET", .path = "/s/"}).code, 404);
}

}  // namespace
}  // namespace medley::worker
