#include "common/certificates/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/certificates/job_certificates.h"

namespace medley::certificates {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr base::WallTime kNow(base::seconds(1'700'000'000));
constexpr std::chrono::hours kDay(24);
constexpr char kUid[] = "4f1c0a9e-58a3-4c52-9d4e-0c6a7c1f2b3d";

class CertificatesTest : public testing::Test {
 protected:
  const KeyPair authority_ = MakeJobAuthority(kUid, kNow).value();
  const KeyPair own_ = IssueForJob(authority_, kUid, kNow, kDay).value();
};

TEST_F(CertificatesTest, AreValidForTheJobAndTheTimeOnly) {
  const std::string name = JobName(kUid);
  EXPECT_THAT(Verify(own_.certificate, authority_.certificate, name, kNow), IsOk());
  EXPECT_THAT(Verify(own_.certificate, authority_.certificate, name, kNow - std::chrono::minutes(59)), IsOk());
  EXPECT_THAT(Verify(own_.certificate, authority_.certificate, name, kNow - std::chrono::minutes(61)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not yet valid")));
  EXPECT_THAT(Verify(own_.certificate, authority_.certificate, name, kNow + kDay + base::seconds(1)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("expired")));
  EXPECT_THAT(Verify(own_.certificate, authority_.certificate, JobName("another"), kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("hostname mismatch")));
}

TEST_F(CertificatesTest, OfAnotherJobAreNotValid) {
  const KeyPair other = MakeJobAuthority(kUid, kNow).value();  // even of a CA with the same name
  EXPECT_THAT(Verify(own_.certificate, other.certificate, JobName(kUid), kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(CertificatesTest, OfACaForOtherNamesAreNotValid) {
  const KeyPair foreign = Issue(authority_, {"medley-scheduler.medley.svc"}, {kNow, kNow + kDay}).value();
  EXPECT_THAT(Verify(foreign.certificate, authority_.certificate, "medley-scheduler.medley.svc", kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("permitted subtree violation")));
}

// Two operators, or one that restarts, make the same CA: what was issued for one is valid for the other.
TEST(DerivedAuthorityTest, IsTheSameForTheSameSeedOnly) {
  const std::string seed(64, 's');
  const KeyPair first = DeriveJobAuthority(kUid, kNow, seed).value();
  const KeyPair again = DeriveJobAuthority(kUid, kNow, seed).value();
  EXPECT_EQ(first.key, again.key);
  const KeyPair own = IssueForJob(first, kUid, kNow, kDay).value();
  EXPECT_THAT(Verify(own.certificate, again.certificate, JobName(kUid), kNow), IsOk());
  EXPECT_EQ(ValidityOf(first.certificate)->to, ValidityOf(again.certificate)->to);
  std::string other = seed;
  for (size_t i = 0; i < seed.size(); ++i) {
    other[i] ^= 1;
    const KeyPair made = DeriveJobAuthority(kUid, kNow, other).value();
    other[i] ^= 1;
    EXPECT_NE(made.key, first.key) << i;
    EXPECT_THAT(Verify(own.certificate, made.certificate, JobName(kUid), kNow),
                StatusIs(absl::StatusCode::kFailedPrecondition))
        << i;
  }
}

TEST(DerivedAuthorityTest, RefusesAShortSeed) {
  EXPECT_THAT(DeriveJobAuthority(kUid, kNow, std::string(31, 's')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("31 bytes")));
}

// The key of a job must not change with a version of Medley or of OpenSSL: jobs of before would lose their token.
TEST(DerivedAuthorityTest, StaysTheSameInLaterVersions) {
  const KeyPair made = DeriveJobAuthority(kUid, kNow, std::string(32, 's')).value();
  EXPECT_EQ(CredentialsFingerprint("token", made.key), "7e10e189cf757d2d");
  EXPECT_EQ(CredentialsFingerprint("token", ""), "ef66a4cb5fcb0223");
}

TEST_F(CertificatesTest, CannotSignOthers) {
  EXPECT_THAT(Issue(own_, {JobName(kUid)}, {kNow, kNow + kDay}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not one of a CA")));
  // Not even by a program that does not look.
  EXPECT_THAT(Verify(own_.certificate, own_.certificate, JobName(kUid), kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(CertificatesTest, HaveKeysAndSerialNumbersOfTheirOwn) {
  const KeyPair second = IssueForJob(authority_, kUid, kNow, kDay).value();
  EXPECT_NE(second.key, own_.key);
  EXPECT_NE(second.certificate, own_.certificate);
}

TEST_F(CertificatesTest, TellTheirValidity) {
  const Validity validity = ValidityOf(own_.certificate).value();
  EXPECT_EQ(validity.from, kNow - std::chrono::hours(1));
  EXPECT_EQ(validity.to, kNow + kDay);
  EXPECT_GT(ValidityOf(authority_.certificate)->to, kNow + kDay * 3650);
}

TEST_F(CertificatesTest, RefusesTextsThatAreNotPem) {
  for (const std::string& text : {std::string(), std::string("-----BEGIN CERTIFICATE-----\n"), own_.key}) {
    EXPECT_THAT(ValidityOf(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_THAT(Issue({text, authority_.key}, {"a"}, {kNow, kNow}), StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
  EXPECT_THAT(Issue({authority_.certificate, own_.key}, {"a"}, {kNow, kNow}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the key of the CA")));
  for (const char* name : {"", "a,DNS:b", "a b", "a/b", "a=b"}) {
    EXPECT_THAT(Issue(authority_, {name}, {kNow, kNow}), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
    EXPECT_THAT(MakeAuthority("ca", name, {kNow, kNow}), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
  }
  EXPECT_THAT(MakeAuthority(std::string(65, 'a'), "a", {kNow, kNow}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CertificatesTest, HaveAllNamesAndAddresses) {
  const std::string name = JobName(kUid);
  const KeyPair both = Issue(authority_, {"a." + name, name}, {kNow, kNow + kDay}).value();
  for (const std::string& own : {"a." + name, name}) {
    EXPECT_THAT(Verify(both.certificate, authority_.certificate, own, kNow), IsOk()) << own;
  }
  EXPECT_THAT(Verify(both.certificate, authority_.certificate, "b." + name, kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("hostname mismatch")));
  EXPECT_THAT(Issue(authority_, {name, "127.0.0.1", "::1"}, {kNow, kNow + kDay}), IsOk());
  EXPECT_THAT(Issue(authority_, {}, {kNow, kNow + kDay}), StatusIs(absl::StatusCode::kInvalidArgument));
}

// Another program agrees.
TEST_F(CertificatesTest, TheProgramOpensslVerifiesThem) {
  const std::filesystem::path folder = base::MakeTempDir("medley-certificates").value();
  const auto path = [&](const char* name) { return (folder / name).string(); };
  std::ofstream(folder / "ca.crt") << authority_.certificate;
  std::ofstream(folder / "own.crt") << own_.certificate;
  const std::string at = std::to_string(std::chrono::system_clock::to_time_t(kNow));
  const std::string command = "openssl verify -x509_strict -attime " + at + " -verify_hostname " + JobName(kUid) +
                              " -purpose sslserver -CAfile " + path("ca.crt") + " " + path("own.crt") + " && " +
                              "openssl verify -x509_strict -attime " + at + " -purpose sslclient -CAfile " +
                              path("ca.crt") + " " + path("own.crt");
  const int code = std::system((command + " >" + path("log") + " 2>&1").c_str());  // NOLINT(cert-env33-c)
  EXPECT_EQ(code, 0) << base::ReadFile(folder / "log").value_or("");
  base::RemoveTempDir(folder);
}

}  // namespace
}  // namespace medley::certificates
