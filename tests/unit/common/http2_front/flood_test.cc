// Floods of HTTP/2 frames against rpc::Server, without a token: what the process keeps is bounded, and other clients
// are answered meanwhile.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/certificates/job_certificates.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/mutual_tls.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "medley/scheduler/v1/scheduler.grpc.pb.h"
#include "tests/attack/http2_attack.h"

namespace medley::rpc {
namespace {

namespace pb = scheduler::v1;

constexpr base::milliseconds kAttack{150};
constexpr int kConnections = 8;
// Without the front, the first attack adds gigabytes. The test's own threads and their buffers are in it too.
const int64_t kMostMiB = std::getenv("MEDLEY_SANITIZE") == nullptr ? 200 : 600;

int64_t ResidentMiB() {
  std::ifstream in("/proc/self/statm");
  int64_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * 4096 >> 20;
}

class OneThread final : public pb::SchedulerService::Service {
  grpc::Status GetCatalog(grpc::ServerContext* context, const pb::GetCatalogRequest*,
                          pb::GetCatalogResponse*) override {
    return Authorize(*context, "secret");
  }
};

class Callbacks final : public pb::SchedulerService::CallbackService {
  grpc::ServerUnaryReactor* GetCatalog(grpc::CallbackServerContext* context, const pb::GetCatalogRequest*,
                                       pb::GetCatalogResponse*) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(Authorize(*context, "secret"));
    return reactor;
  }
};

struct Credentials {
  std::shared_ptr<const MutualTls> tls;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> attacker{nullptr, SSL_CTX_free};
};

// The attacker has a certificate of the job, but no token.
Credentials OfJob() {
  const base::WallTime now = base::SystemClock().Now();
  const auto authority = certificates::MakeJobAuthority("job", now).value();
  const auto own = certificates::IssueForJob(authority, "job", now, base::seconds(3600)).value();
  Credentials out;
  out.tls = MutualTls::FromTexts({authority.certificate, own.certificate, own.key}, certificates::JobName("job"));
  out.attacker.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_alpn_protos(out.attacker.get(), reinterpret_cast<const unsigned char*>("\x02h2"), 3);
  BIO* const pem = BIO_new_mem_buf(own.certificate.data(), static_cast<int>(own.certificate.size()));
  BIO* const key = BIO_new_mem_buf(own.key.data(), static_cast<int>(own.key.size()));
  X509* const certificate = PEM_read_bio_X509(pem, nullptr, nullptr, nullptr);
  EVP_PKEY* const secret = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
  EXPECT_EQ(SSL_CTX_use_certificate(out.attacker.get(), certificate), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(out.attacker.get(), secret), 1);
  X509_free(certificate);
  EVP_PKEY_free(secret);
  BIO_free(pem);
  BIO_free(key);
  return out;
}

absl::Status AskOnce(pb::SchedulerService::Stub& stub) {
  grpc::ClientContext context;
  Prepare(context, {.token = "secret", .timeout = base::seconds(30), .wait_for_ready = true});
  pb::GetCatalogResponse response;
  return FromGrpc(stub.GetCatalog(&context, {}, &response));
}

// An honest call. It is made once: a server of threads has one for it, whatever others do.
absl::Status Ask(const Server& server, const std::shared_ptr<const MutualTls>& tls) {
  const auto stub = pb::SchedulerService::NewStub(MakeChannel(server.address(), {.mutual_tls = tls}));
  return AskOnce(*stub);
}

void Survives(const std::vector<std::string>& attacks, grpc::Service& service, const Credentials& credentials,
              int connections = kConnections) {
  const auto server = Server::Start({.answers_in_threads = dynamic_cast<OneThread*>(&service) != nullptr,
                                     .max_connections = 64,
                                     .mutual_tls = credentials.tls},
                                    {&service})
                          .value();
  ASSERT_THAT(Ask(*server, credentials.tls), base::IsOk());
  const int64_t before = ResidentMiB();
  for (const std::string& attack : attacks) {
    absl::StatusOr<attack::Sent> sent;
    std::jthread attacker([&] {
      sent = attack::Flood({.address = server->address(),
                            .attack = attack,
                            .connections = connections,
                            .time = kAttack,
                            .tls = credentials.attacker.get()});
    });
    EXPECT_THAT(Ask(*server, credentials.tls), base::IsOk()) << attack;
    attacker.join();
    ASSERT_THAT(sent.status(), base::IsOk());
    EXPECT_GT(sent->connections, 0) << attack;
    EXPECT_LT(ResidentMiB() - before, kMostMiB) << attack << ": " << sent->frames << " frames";
    EXPECT_THAT(Ask(*server, credentials.tls), base::IsOk()) << attack;
  }
}

TEST(FloodTest, ResetsOfAServerWithThreads) {
  OneThread service;
  Survives({"reset", "reset-data", "reset-fields", "reset-unknown", "made-reset", "empty", "open"}, service, {});
}

TEST(FloodTest, ResetsOfAServerWithCallbacks) {
  Callbacks service;
  Survives({"reset", "reset-data", "reset-fields", "reset-unknown", "made-reset", "empty", "open"}, service, {});
}

// Keeps the thread of a call with the token "slow" until it may end.
class Slow final : public pb::SchedulerService::Service {
 public:
  std::atomic<int> held = 0;
  std::latch end{1};

 private:
  grpc::Status GetCatalog(grpc::ServerContext* context, const pb::GetCatalogRequest*,
                          pb::GetCatalogResponse*) override {
    if (!Authorize(*context, "slow").ok()) return Authorize(*context, "secret");
    ++held;
    end.wait();
    return grpc::Status::OK;
  }
};

// Issue 44: the calls that every connection may have used up the threads, and others were refused.
TEST(FloodTest, HonestCallsFindAThread) {
  constexpr int kThreads = 32, kFloods = 4, kCalls = 16;
  constexpr int kHeld = kThreads / 2 + (kFloods - 1) * 4;
  Slow service;
  const auto server =
      Server::Start({.max_threads = kThreads, .answers_in_threads = true, .max_connections = 64}, {&service}).value();
  std::vector<std::jthread> calls;
  for (int flood = 0; flood < kFloods; ++flood) {
    const auto channel = MakeChannel(server->address(), {});
    for (int call = 0; call < kCalls; ++call) {
      calls.emplace_back([channel] {
        grpc::ClientContext context;
        Prepare(context, {.token = "slow", .timeout = base::seconds(60), .wait_for_ready = true});
        pb::GetCatalogResponse response;
        static_cast<void>(pb::SchedulerService::NewStub(channel)->GetCatalog(&context, {}, &response).ok());
      });
    }
  }
  const base::SystemClock clock;
  const base::SteadyTime patience = clock.Steady() + base::seconds(30);
  while (service.held < kHeld && clock.Steady() < patience) std::this_thread::yield();
  EXPECT_GE(service.held, kHeld) << "the floods have what they may";
  for (int call = 0; call < 10; ++call) EXPECT_THAT(Ask(*server, nullptr), base::IsOk()) << call;
  service.end.count_down();
}

TEST(FloodTest, ResetsThroughTls) {
  OneThread service;
  Survives({"reset", "reset-fields", "empty", "open"}, service, OfJob());
}

TEST(FloodTest, FramesWithoutCalls) {
  OneThread service;
  Survives({"ping", "settings", "priority", "empty-data", "continuation"}, service, {});
}

// More connections than the server accepts: an honest client takes the place of one that does nothing.
TEST(FloodTest, SilentConnectionsMakeRoom) {
  OneThread service;
  Survives({"silent", "preface"}, service, {}, 200);
  Survives({"silent"}, service, OfJob(), 100);
}

}  // namespace
}  // namespace medley::rpc
