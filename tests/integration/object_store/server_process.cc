#include "tests/integration/object_store/server_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/certificates/certificates.h"
#include "common/http_client/connection.h"

namespace medley::object_store {
namespace {

std::string SourceFile(const std::string& path) {
  const char* const root = std::getenv("MEDLEY_SOURCE_DIR");
  return (root == nullptr ? std::string(".") : std::string(root)) + "/" + path;
}

}  // namespace

ServerProcess::ServerProcess() : folder_(*base::MakeTempDir("object-server")) {
  const base::WallTime now = base::SystemClock().Now();
  const certificates::Validity day{now - std::chrono::hours(1), now + std::chrono::hours(24)};
  const auto authority = certificates::MakeAuthority("CA of a test", "localhost", day);
  EXPECT_THAT(authority, base::IsOk());
  const auto own = certificates::Issue(*authority, {"localhost"}, day);
  EXPECT_THAT(own, base::IsOk());
  authority_ = authority->certificate;
  EXPECT_THAT(base::WriteFileAtomic(folder_ / "tls.crt", own->certificate), base::IsOk());
  EXPECT_THAT(base::WriteFileAtomic(folder_ / "tls.key", own->key), base::IsOk());
  const std::string script = SourceFile("tests/integration/object_store/object_server.py");
  const std::string certificate = folder_ / "tls.crt", key = folder_ / "tls.key";
  int out[2] = {-1, -1};
  EXPECT_EQ(pipe(out), 0);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out[1], STDOUT_FILENO);
    execlp("python3", "python3", "-B", script.c_str(), certificate.c_str(), key.c_str(), nullptr);
    _exit(127);
  }
  close(out[1]);
  int port = 0;
  std::FILE* const lines = fdopen(out[0], "r");
  EXPECT_EQ(std::fscanf(lines, "%d", &port), 1) << "object_server.py did not start";
  std::fclose(lines);
  endpoint_ = "https://localhost:" + std::to_string(port);
}

ServerProcess::~ServerProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  base::RemoveTempDir(folder_);
}

Settings ServerProcess::settings() const {
  Settings settings;
  settings.endpoint = endpoint_;
  settings.region = "test-1";
  settings.path_style = true;
  settings.keys = {"TESTKEY", "TESTSECRET", ""};
  settings.authorities = authority_;
  return settings;
}

std::vector<std::string> ServerProcess::environment() const {
  const Settings with = settings();
  return {"AWS_ACCESS_KEY_ID=" + with.keys.access_key_id,
          "AWS_SECRET_ACCESS_KEY=" + with.keys.secret_access_key,
          "AWS_REGION=" + with.region,
          "AWS_ENDPOINT_URL=" + with.endpoint,
          "MEDLEY_S3_PATH_STYLE=1",
          "MEDLEY_STORAGE_CA=" + with.authorities};
}

std::string ServerProcess::Ask(const std::string& method, const std::string& path) const {
  http_client::Connection connection({.user_agent = "test", .authorities = authority_});
  const http_client::Result result =
      connection.Run({.method = method, .url = endpoint_ + path, .body = std::nullopt}, "asking the server", {});
  EXPECT_THAT(result.status, base::IsOk());
  return result.response.body;
}

void ServerProcess::Fail(const std::string& how, int number) const {
  Ask("PUT", "/_fault/" + how + "/" + std::to_string(number));
}

int ServerProcess::seen() const { return std::stoi(Ask("GET", "/_seen")); }

int ServerProcess::uploads() const { return std::stoi(Ask("GET", "/_uploads")); }

std::string ServerProcess::kinds() const { return Ask("GET", "/_kinds"); }

}  // namespace medley::object_store
