// The server over a real socket: versions, watches, limits, faults, tokens.
#include "localcluster/apiserver/api_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "kube/object.h"
#include "localcluster/apiserver/faults.h"

namespace medley::localcluster {
namespace {

using apiserver::Fault;
using testing::HasSubstr;
using testing::Not;

struct Answer {
  int code = 0;
  std::string text;  // header and body, with chunks not decoded
  kube::Json body;   // if the body is JSON
};

class ServerTest : public testing::Test {
 protected:
  void Start(ApiServerOptions options = {}) {
    server_ = std::make_unique<ApiServer>(clock_, options);
    ASSERT_THAT(server_->Start(), base::IsOk());
  }

  // Sends one request on a new connection and reads the whole answer, or until it contains `until`.
  Answer Call(const std::string& method, const std::string& target, const std::string& body = "",
              const std::string& headers = "", const std::string& until = "") {
    Answer answer;
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit = {60, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
      const std::string token =
          send_token_ && !server_->token().empty() ? "Authorization: Bearer " + server_->token() + "\r\n" : "";
      const std::string request =
          fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{}{}\r\n{}", method,
                      target, host_, body.size(), token, headers, body);
      ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
      char buffer[4096];
      for (ssize_t n; (n = ::recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
        answer.text.append(buffer, static_cast<size_t>(n));
        if (!until.empty() && answer.text.find(until) != std::string::npos) break;
      }
    }
    ::close(fd);
    if (answer.text.size() > 12) answer.code = std::atoi(answer.text.c_str() + 9);
    const size_t end = answer.text.find("\r\n\r\n");
    if (end != std::string::npos) {
      answer.body = kube::Json::parse(answer.text.substr(end + 4), nullptr, false);
    }
    return answer;
  }
  Answer Put(const std::string& name, const std::string& data, const std::string& version = "") {
    return Call("PUT", kMaps + "/" + name,
                fmt::format(R"({{"metadata":{{"name":"{}","resourceVersion":"{}"}},"data":{{"k":"{}"}}}})", name,
                            version, data));
  }
  Answer Post(const std::string& name) {
    return Call("POST", kMaps, fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name));
  }

  const std::string kMaps = "/api/v1/namespaces/default/configmaps";
  base::SystemClock clock_;
  std::unique_ptr<ApiServer> server_;
  bool send_token_ = true;
  std::string host_ = "127.0.0.1";
};

TEST_F(ServerTest, ConflictsOnStaleVersionsAndIgnoresEmptyWrites) {
  Start();
  const kube::Json first = Post("a").body;
  const std::string version = first["metadata"]["resourceVersion"];
  const Answer second = Put("a", "1", version);
  EXPECT_EQ(second.code, 200);
  const Answer stale = Put("a", "2", version);
  EXPECT_EQ(stale.code, 409);
  EXPECT_EQ(stale.body["reason"], "Conflict");
  EXPECT_EQ(Put("a", "1").body["metadata"]["resourceVersion"], second.body["metadata"]["resourceVersion"]);
  EXPECT_EQ(Post("a").body["reason"], "AlreadyExists");
  const Answer refused = Call("DELETE", kMaps + "/a", R"({"preconditions":{"uid":"other"}})");
  EXPECT_EQ(refused.code, 409);
  EXPECT_EQ(Call("DELETE", kMaps + "/a").body["status"], "Success");
  EXPECT_EQ(Call("GET", kMaps + "/a").code, 404);
}

TEST_F(ServerTest, ListsInPages) {
  Start();
  for (const char* name : {"a", "b", "c"}) Post(name);
  const Answer page = Call("GET", kMaps + "?limit=2");
  EXPECT_EQ(page.body["items"].size(), 2u);
  EXPECT_EQ(page.body["metadata"]["remainingItemCount"], 1);
  std::string token = page.body["metadata"]["continue"];
  for (char& c : token) c = c == ' ' ? '+' : c;
  const Answer rest = Call("GET", kMaps + "?limit=2&continue=" + token);
  ASSERT_EQ(rest.body["items"].size(), 1u);
  EXPECT_EQ(rest.body["items"][0]["metadata"]["name"], "c");
}

TEST_F(ServerTest, WatchesFromAVersionAndEndsAtItsTimeout) {
  Start();
  const std::string version = Post("a").body["metadata"]["resourceVersion"];
  Put("a", "1");
  Call("DELETE", kMaps + "/a");
  const Answer all = Call("GET", kMaps + "?watch=1&timeoutSeconds=1&resourceVersion=" + version);
  EXPECT_THAT(all.text, Not(HasSubstr("ADDED")));
  EXPECT_THAT(all.text, HasSubstr("MODIFIED"));
  EXPECT_THAT(all.text, HasSubstr("DELETED"));
  EXPECT_THAT(all.text, HasSubstr("0\r\n\r\n"));
}

TEST_F(ServerTest, WatchListEndsItsInitialEventsWithABookmark) {
  Start();
  Post("a");
  const Answer list = Call("GET", kMaps +
                                      "?watch=1&timeoutSeconds=1&sendInitialEvents=true&"
                                      "resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
  EXPECT_THAT(list.text, HasSubstr("ADDED"));
  EXPECT_THAT(list.text, HasSubstr("\"k8s.io/initial-events-end\":\"true\""));
  EXPECT_EQ(Call("GET", kMaps + "?watch=1&sendInitialEvents=true").code, 422);
}

TEST_F(ServerTest, OldVersionsExpireAndFutureOnesAreTooLarge) {
  Start({.event_window = 2});
  const std::string version = Post("a").body["metadata"]["resourceVersion"];
  for (const char* data : {"1", "2", "3"}) Put("a", data);
  const Answer old = Call("GET", kMaps + "?watch=1&resourceVersion=" + version);
  EXPECT_THAT(old.text, HasSubstr("\"type\":\"ERROR\""));
  EXPECT_THAT(old.text, HasSubstr("\"reason\":\"Expired\""));
  const Answer future = Call("GET", kMaps + "?resourceVersion=99999");
  EXPECT_EQ(future.code, 504);
  EXPECT_THAT(future.body["message"], HasSubstr("Too large resource version"));
}

TEST_F(ServerTest, BookmarksSendTheVersionOfAQuietWatch) {
  Start({.bookmark_interval = base::milliseconds(100)});
  const Answer watch = Call("GET",
                            kMaps +
                                "?watch=1&timeoutSeconds=60&allowWatchBookmarks=true&"
                                "fieldSelector=metadata.name%3Dnone",
                            "", "", "BOOKMARK");
  EXPECT_THAT(watch.text, HasSubstr("BOOKMARK"));
}

TEST_F(ServerTest, ScriptedFaultsHappenOnceEach) {
  Start();
  Post("a");
  server_->faults().Add({.verb = "list", .plural = "configmaps", .code = 429, .retry_after_seconds = 3});
  const Answer busy = Call("GET", kMaps);
  EXPECT_EQ(busy.code, 429);
  EXPECT_THAT(busy.text, HasSubstr("Retry-After: 3"));
  EXPECT_EQ(Call("GET", kMaps).code, 200);
  server_->faults().Add({.kind = Fault::Kind::kWatchExpired, .verb = "watch"});
  EXPECT_THAT(Call("GET", kMaps + "?watch=1").text, HasSubstr("\"code\":410"));
  server_->faults().Add({.kind = Fault::Kind::kHalfLine, .verb = "watch", .events = 1});
  const Answer half = Call("GET", kMaps + "?watch=1");
  EXPECT_THAT(half.text, HasSubstr("\"ki\r\n"));
  EXPECT_THAT(half.text, Not(HasSubstr("0\r\n\r\n")));
  server_->faults().Add({.kind = Fault::Kind::kDrop});
  EXPECT_EQ(Call("GET", kMaps).text, "");
  EXPECT_EQ(server_->faults().left(), 0u);
}

TEST_F(ServerTest, BodiesAndConnectionsAreBounded) {
  Start({.max_connections = 1, .max_body = 1000});
  const Answer large = Call("POST", kMaps, std::string(2000, ' '));
  EXPECT_EQ(large.code, 413);
  server_->Stop();
  server_->Stop();  // idempotent
}

// Issue 12: every cluster gave its first job the same UID, so a job counted the journal of another one as its own.
TEST_F(ServerTest, UidsAreRandomUnlessATestBringsItsOwnNumbers) {
  const auto uid = [&](ApiServerOptions options) {
    Start(std::move(options));
    return Call("POST", kMaps, R"({"metadata":{"name":"a"}})").body["metadata"].value("uid", "");
  };
  const std::string first = uid({});
  EXPECT_THAT(first, testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(uid({}), first);
  const auto numbers = [] { return [rng = base::Rng(7)]() mutable { return rng.Next(); }; };
  const std::string reproducible = uid({.random = numbers()});
  EXPECT_NE(reproducible, first);
  EXPECT_EQ(uid({.random = numbers()}), reproducible);
}

TEST_F(ServerTest, ARestoredObjectKeepsItsUidAndStatus) {
  Start();
  kube::Object quota(kube::Json::parse(
      R"({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "p", "namespace": "default",
      "uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "77"},
      "spec": {"hard": {"pods": "3"}}, "status": {"used": {"pods": "2"}}})"));
  ASSERT_THAT(server_->Restore(quota), base::IsOk());
  const kube::Json restored = Call("GET", "/api/v1/namespaces/default/resourcequotas/p").body;
  EXPECT_EQ(restored["metadata"]["uid"], "u-1");
  EXPECT_EQ(restored["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
  EXPECT_NE(restored["metadata"]["resourceVersion"], "77");
  EXPECT_EQ(restored["status"]["used"]["pods"], "2");
  EXPECT_FALSE(server_->Restore(quota).ok()) << "it exists";
  // Clients cannot choose either.
  const kube::Json created = Call("POST", kMaps, R"({"metadata":{"name":"a","uid":"u-2"}})").body;
  EXPECT_NE(created["metadata"]["uid"], "u-2");
}

TEST_F(ServerTest, TokensAreRequired) {
  Start({.tokens = {{"secret", "me"}}});
  send_token_ = false;
  EXPECT_EQ(Call("GET", kMaps).code, 401);
  EXPECT_EQ(Call("GET", kMaps, "", "Authorization: Bearer wrong!\r\n").code, 401);
  EXPECT_EQ(Call("GET", kMaps, "", "Authorization: Bearer secret\r\n").code, 200);
}

// Issue 13: any local user could do everything.
TEST_F(ServerTest, WithoutATokenOfItsOwnerItMakesOneAndEveryPathNeedsIt) {
  Start();
  EXPECT_THAT(server_->token(), testing::MatchesRegex("[0-9a-f]{64}"));
  const std::vector<std::string> paths = {"/",
                                          "/healthz",
                                          "/livez",
                                          "/readyz",
                                          "/version",
                                          "/api",
                                          "/apis",
                                          "/api/v1",
                                          "/openapi/v2",
                                          "/openapi/v3",
                                          kMaps,
                                          kMaps + "?watch=1",
                                          "/nothing",
                                          "/apis/apps/",
                                          "/metrics",
                                          kMaps + "/a/none",
                                          "/api/v1/nodes/x/",
                                          "/apis/medley.dev/v1alpha1"};
  for (const std::string& path : paths) {
    send_token_ = false;
    EXPECT_EQ(Call("GET", path).code, 401) << path;
    send_token_ = true;
    EXPECT_NE(Call("GET", path, "", "", "\r\n\r\n").code, 401) << path;
  }
  send_token_ = false;
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    EXPECT_EQ(Call(method, kMaps).code, 401) << method;
  }
  const std::string first = server_->token();
  Start();
  EXPECT_NE(server_->token(), first);
  Start({.allow_anonymous = true});
  EXPECT_EQ(Call("GET", kMaps).code, 200);
}

TEST_F(ServerTest, OnlyTheOwnerMayReadTheKubeconfig) {
  const auto folder = base::MakeTempDir("server-test");
  ASSERT_THAT(folder, base::IsOk());
  Start();
  ASSERT_THAT(server_->WriteKubeconfig(*folder / "kubeconfig"), base::IsOk());
  EXPECT_EQ(std::filesystem::status(*folder / "kubeconfig").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const kube::Json config = kube::Json::parse(base::ReadFile(*folder / "kubeconfig").value_or(""), nullptr, false);
  EXPECT_EQ(config["users"][0]["user"]["token"], server_->token());
  base::RemoveTempDir(*folder);
}

// A page of any site can send requests to 127.0.0.1: under its own name, which resolves to that address, or as a form.
TEST_F(ServerTest, OtherSitesPagesAreRefusedEvenWithTheToken) {
  Start();
  const std::string port = ":" + std::to_string(server_->port());
  for (const std::string name : {"127.0.0.1", "localhost", "[::1]"}) {
    for (const std::string& host : {name, name + port, name + ":1"}) {  // the last one: a forwarded port
      host_ = host;
      EXPECT_EQ(Call("GET", kMaps).code, 200) << host;
    }
  }
  for (const char* host : {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "0.0.0.0", "::1",
                           "192.168.0.1", "127.0.0.1@evil.example"}) {
    host_ = host;
    EXPECT_EQ(Call("GET", kMaps).body["reason"], "Forbidden") << host;
  }
  host_ = "127.0.0.1" + port;
  EXPECT_EQ(Call("GET", kMaps, "", "Origin: http://127.0.0.1" + port + "\r\n").code, 200);
  for (const char* origin : {"null", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:1"}) {
    EXPECT_EQ(Call("GET", kMaps, "", fmt::format("Origin: {}\r\n", origin)).code, 403) << origin;
  }
}

// The types that a form or a script sends without asking the server first are not Kubernetes'.
TEST_F(ServerTest, BodiesOfOtherTypesAreRefused) {
  Start();
  const std::string body = R"({"metadata":{"name":"a"}})";
  const auto code = [&](const char* method, const std::string& target, const std::string& type) {
    const Answer answer = Call(method, target, body, "Content-Type: " + type + "\r\n");
    EXPECT_EQ(answer.code == 415, answer.body.value("reason", "") == "UnsupportedMediaType") << type;
    return answer.code;
  };
  EXPECT_EQ(Call("POST", kMaps, body).code, 201);  // kube-apiserver takes a body without a type as JSON, too
  const std::string a = kMaps + "/a";
  for (const char* type :
       {"application/json", "application/json; charset=utf-8", "Application/JSON", "application/yaml"}) {
    EXPECT_EQ(code("PUT", a, type), 200) << type;
  }
  for (const char* type : {"text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded",
                           "multipart/form-data; boundary=x", "application/jsonx", "application/octet-stream",
                           "text/yaml", "application/merge-patch+json"}) {
    EXPECT_EQ(code("POST", kMaps, type), 415) << type;
    EXPECT_EQ(code("PUT", a, type), 415) << type;
    EXPECT_EQ(code("DELETE", a, type), 415) << type;
    EXPECT_EQ(code("DELETE", kMaps, type), 415) << type;
    EXPECT_EQ(code("POST", "/api/v1/namespaces/default/pods/p/binding", type), 415) << type;
    EXPECT_EQ(code("POST", "/api/v1/namespaces/default/pods/p/eviction", type), 415) << type;
  }
  for (const char* type : {"text/plain", "application/json", "application/apply-patch"}) {
    EXPECT_EQ(code("PATCH", a, type), 415) << type;
  }
  EXPECT_EQ(Call("PATCH", a, body).code, 415);
  EXPECT_EQ(code("PATCH", a, "application/merge-patch+json"), 200);
  EXPECT_EQ(Call("GET", a).code, 200);
}

TEST_F(ServerTest, SaysWhichAddressIsInUse) {
  Start();
  ApiServer second(clock_, {.port = server_->port()});
  EXPECT_THAT(second.Start(), base::StatusIs(absl::StatusCode::kUnavailable,
                                             HasSubstr(fmt::format("127.0.0.1:{} is in use", server_->port()))));
}

TEST_F(ServerTest, NamesTheFileThatItCannotLoad) {
  ApiServer broken(clock_, {.crd_paths = {"/nonexistent/crd.yaml"}});
  EXPECT_FALSE(broken.Start().ok());
  ApiServer tls(clock_, {.tls_certificate = "/nonexistent.pem", .tls_key = "/nonexistent.key"});
  EXPECT_THAT(tls.Start(), base::StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nonexistent.pem")));
}

}  // namespace
}  // namespace medley::localcluster
