// Who may call the processes of a job: those with a certificate of the job's own CA, and its token. The certificates
// are renewed while the job runs.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <set>

#include "common/base/file.h"
#include "common/base/testing/patience.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/mutual_tls.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "medley/job/v1/parameter_server.grpc.pb.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"

namespace medley::worker::job_tls_test {
namespace {

namespace pb = ::medley::job::v1;

std::shared_ptr<const rpc::MutualTls> CertificateOf(const certificates::KeyPair& authority, const std::string& uid,
                                                    const std::string& trusted) {
  const base::SystemClock clock;
  const auto own = certificates::IssueForJob(authority, uid, clock.Now(), std::chrono::hours(1)).value();
  return rpc::MutualTls::FromTexts({trusted, own.certificate, own.key}, certificates::JobName(JobHarness::kUid));
}

class JobTlsTest : public testing::Test {
 protected:
  const SmallTable table_;
};

// One call to the coordinator and one to a parameter server.
class Caller {
 public:
  explicit Caller(JobHarness& job) : job_(job) {}

  grpc::StatusCode Observe(const rpc::ChannelOptions& options, const std::string& token) {
    const auto stub = pb::CoordinatorService::NewStub(rpc::MakeChannel(job_.Endpoint("coordinator"), options));
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = token, .timeout = base::Patience(base::seconds(60))});
    const auto stream = stub->WatchObservations(&context, pb::WatchObservationsRequest());
    pb::WatchObservationsResponse response;
    const bool answered = stream->Read(&response);
    if (!answered) return stream->Finish().error_code();
    context.TryCancel();
    stream->Finish();
    return grpc::StatusCode::OK;
  }

  // For a generation that the server does not hold: only a caller who may ask learns that.
  grpc::StatusCode Pull(const rpc::ChannelOptions& options, const std::string& token) {
    const auto stub = pb::ParameterServerService::NewStub(rpc::MakeChannel(job_.Endpoint("server-0"), options));
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = token, .timeout = base::Patience(base::seconds(60))});
    pb::PullRequest request;
    request.set_generation(999);
    const auto stream = stub->Pull(&context);
    stream->WriteLast(request, {});
    return stream->Finish().error_code();
  }

 private:
  JobHarness& job_;
};

TEST_F(JobTlsTest, OnlyAMemberOfTheJobMayCallItsProcesses) {
  JobOptions options = SmallJob(table_.file(), 1);
  options.epochs = 100000;
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply({.stages = {{0, 1, 1}, {1, 4, 1}}, .servers = 1}, "start");
  const pb::Observation seen = job.WaitFor([](const pb::Observation& o) { return o.step() >= 1; }, base::seconds(60));
  ASSERT_GE(seen.step(), 1) << job.AllLogs();
  Caller caller(job);
  const base::SystemClock clock;
  const std::string& ca = job.authority().certificate;
  const auto other = certificates::MakeJobAuthority("other", clock.Now()).value();
  const auto same_name = certificates::MakeJobAuthority(JobHarness::kUid, clock.Now()).value();
  const auto call_both = [&](const rpc::ChannelOptions& with, const std::string& token) {
    const grpc::StatusCode coordinator = caller.Observe(with, token), server = caller.Pull(with, token);
    EXPECT_EQ(coordinator, server == grpc::StatusCode::FAILED_PRECONDITION ? grpc::StatusCode::OK : server);
    return coordinator;
  };
  const std::string token = JobHarness::kToken;
  // Plain text, as of an older version.
  EXPECT_EQ(call_both({}, token), grpc::StatusCode::UNAVAILABLE);
  // TLS without a certificate. The client trusts the server's, whose name it checks.
  EXPECT_EQ(call_both({.tls = rpc::ClientTls{ca, "", ""}}, token), grpc::StatusCode::UNAVAILABLE);
  // Certificates of another job, and of a CA of the same name, with the job's token.
  EXPECT_EQ(call_both({.mutual_tls = CertificateOf(other, "other", ca)}, token), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(call_both({.mutual_tls = CertificateOf(same_name, JobHarness::kUid, ca)}, token),
            grpc::StatusCode::UNAVAILABLE);
  // A member sends its token to no process of another job.
  EXPECT_EQ(call_both({.mutual_tls = CertificateOf(job.authority(), JobHarness::kUid, other.certificate)}, token),
            grpc::StatusCode::UNAVAILABLE);
  // The right certificate with a wrong token, and with the token.
  EXPECT_EQ(call_both({.mutual_tls = job.tls()}, "wrong"), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(call_both({.mutual_tls = job.tls()}, token), grpc::StatusCode::OK);
}

// The certificates in use, by the folder of their process.
std::map<std::string, std::string> Certificates(const std::filesystem::path& folder) {
  std::map<std::string, std::string> found;
  // Each process has a folder for temporary files, with one for its certificate.
  for (const auto& process : std::filesystem::directory_iterator(folder)) {
    std::error_code ended;  // a process may remove its folder meanwhile
    for (const auto& entry : std::filesystem::directory_iterator(process.path(), ended)) {
      const auto text = base::ReadFile(entry.path() / "identity.pem");
      if (text.ok()) found[entry.path().filename()] = *text;
    }
  }
  return found;
}

TEST_F(JobTlsTest, CertificatesAreRenewedWithoutLosingAStep) {
  JobOptions options = SmallJob(table_.file(), 1);
  options.epochs = 30;  // far more than the 6 seconds below, in which the job hardly trains
  options.certificate_lifetime = "6s";
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply({.stages = {{0, 1, 1}, {1, 4, 1}}, .servers = 1}, "start");
  job.WaitFor([](const pb::Observation& o) { return o.step() >= 1; }, base::seconds(60));
  const auto first = Certificates(job.folder());
  ASSERT_EQ(first.size(), 4U) << job.AllLogs();
  for (const auto& [folder, text] : first) EXPECT_THAT(text, testing::HasSubstr("PRIVATE KEY"));
  const base::SystemClock clock;
  const auto all_ended = [&] {
    return std::all_of(first.begin(), first.end(),
                       [&](const auto& each) { return certificates::ValidityOf(each.second)->to < clock.Now(); });
  };
  // Training goes on, with its connections, when the first certificates have ended.
  {
    const Slowed slowed(job, "t1-0");
    job.WaitFor([&](const pb::Observation&) { return all_ended(); }, base::seconds(60));
  }
  ASSERT_TRUE(all_ended());
  const auto second = Certificates(job.folder());
  for (const auto& [folder, text] : first) EXPECT_NE(second.at(folder), text) << folder;
  // A new member makes every process connect to another one. Connections of before go on.
  job.Apply({.stages = {{0, 1, 1}, {1, 4, 2}}, .servers = 2, .micro_batches = 2}, "grow");
  const pb::Observation end = job.WaitForEnd(base::seconds(300));
  ASSERT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
  EXPECT_EQ(end.restarts(), 0);
  EXPECT_EQ(job.Losses().size(), size_t{100} * static_cast<size_t>(options.epochs));
  EXPECT_EQ(end.switches_size(), 1);
  for (const pb::SwitchRecord& record : end.switches()) EXPECT_EQ(record.lost_steps(), 0) << record.reason();
}

}  // namespace
}  // namespace medley::worker::job_tls_test
