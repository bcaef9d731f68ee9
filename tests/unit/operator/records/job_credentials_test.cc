#include "operator/records/job_credentials.h"

#include <gmock/gmock.h>

#include <set>

#include "common/base/testing/status_matchers.h"
#include "common/certificates/job_certificates.h"

namespace medley::ops {
namespace {

using base::IsOk;

constexpr char kCreated[] = "2026-03-01T00:00:00Z";

RecordKeys KeysOf(const std::string& letters) {
  std::vector<std::string> keys;
  for (const char letter : letters) keys.emplace_back(32, letter);
  return RecordKeys(keys);
}

kube::Object JobOf(const std::string& ns, const std::string& name, const std::string& uid) {
  kube::Json job;
  job["metadata"] = {{"namespace", ns}, {"name", name}, {"uid", uid}, {"creationTimestamp", kCreated}};
  return kube::Object(std::move(job));
}

std::vector<JobCredentials> Derive(const std::string& keys, const kube::Object& job, bool tls = true,
                                   base::nanoseconds later = base::seconds(0)) {
  const auto now = *base::ParseTime(kCreated) + std::chrono::duration_cast<base::WallTime::duration>(later);
  return DeriveCredentials(KeysOf(keys), job, tls, now).value();
}

TEST(JobCredentialsTest, EachOperatorWithTheKeyMakesTheSame) {
  const kube::Object job = JobOf("ml", "adult", "uid");
  const JobCredentials first = Derive("a", job).front();
  const JobCredentials again = Derive("a", job, true, std::chrono::hours(24 * 365)).front();
  EXPECT_EQ(first.token, again.token);
  EXPECT_EQ(first.ca_key, again.ca_key);
  // A member that has the CA of one of them and the operator that has the other verify each other.
  const auto now = *base::ParseTime(kCreated) + std::chrono::hours(24 * 365);
  const auto own = certificates::IssueForJob({first.ca_certificate, first.ca_key}, "uid", now, base::seconds(60));
  EXPECT_THAT(certificates::Verify(own->certificate, again.ca_certificate, certificates::JobName("uid"), now), IsOk());
}

TEST(JobCredentialsTest, NoTwoJobsShareAny) {
  std::set<std::string> tokens, keys;
  const kube::Object jobs[] = {JobOf("ml", "adult", "uid"), JobOf("ml", "adult", "another"),
                               JobOf("ml", "other", "uid"), JobOf("evil", "adult", "uid")};
  for (const kube::Object& job : jobs) {
    for (const JobCredentials& each : Derive("ab", job)) {
      EXPECT_TRUE(tokens.insert(each.token).second);
      EXPECT_TRUE(each.ca_key.empty() || keys.insert(each.ca_key).second);
    }
  }
  EXPECT_EQ(tokens.size(), 4u * 4u);  // two keys, with and without a CA
  EXPECT_EQ(keys.size(), 4u * 2u);
}

TEST(JobCredentialsTest, ANewJobGetsTheFirstKeyAndTheSettingOfNow) {
  const kube::Object job = JobOf("ml", "adult", "uid");
  EXPECT_FALSE(Derive("ab", job, true).front().ca_certificate.empty());
  EXPECT_TRUE(Derive("ab", job, false).front().ca_certificate.empty());
  EXPECT_EQ(Derive("ab", job).front().token, Derive("a", job).front().token);
  // What an operator with the other setting, or before the key was rotated, has made is among them.
  const auto has = [&](const std::vector<JobCredentials>& all, const std::string& token) {
    return std::any_of(all.begin(), all.end(), [&](const JobCredentials& each) { return each.token == token; });
  };
  EXPECT_TRUE(has(Derive("ba", job, false), Derive("a", job, true).front().token));
  EXPECT_TRUE(has(Derive("ba", job, true), Derive("a", job, false).front().token));
}

TEST(JobCredentialsTest, ACertificateIsValidAtOnceAlsoForAClockThatIsBehind) {
  const kube::Object job = JobOf("ml", "adult", "uid");
  const base::nanoseconds behind = -std::chrono::hours(48);
  const JobCredentials made = Derive("a", job, true, behind).front();
  EXPECT_LE(certificates::ValidityOf(made.ca_certificate)->from, *base::ParseTime(kCreated) - std::chrono::hours(48));
}

}  // namespace
}  // namespace medley::ops
