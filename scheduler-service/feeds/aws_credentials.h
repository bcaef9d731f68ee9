// Keys to sign requests to AWS with, from where AWS's own tools look for them.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "scheduler-service/feeds/http_fetcher.h"
#include "scheduler-service/feeds/sigv4.h"

namespace medley::sched {

// The value of an environment variable, empty when there is none. Injected: tests set no real
// variables.
using Environment = std::function<std::string(const std::string& name)>;

// Not thread-safe.
class AwsCredentials {
 public:
  virtual ~AwsCredentials() = default;
  // Errors: Unauthenticated naming what is missing; those of the fetcher and of STS.
  virtual absl::StatusOr<AwsKeys> Get(base::WallTime now, std::stop_token stop) = 0;
  // AWS refused the keys: forget what is kept of them.
  virtual void Forget() {}
};

struct AwsCredentialOptions {
  // "environment", "file", "web-identity", or "auto": the first of these, in the order environment,
  // web-identity, file, that is set up at all.
  std::string kind = "auto";
  // file: AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials, and AWS_PROFILE or "default", where
  // empty.
  std::filesystem::path file;
  std::string profile;
  // web-identity: AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_SESSION_NAME or
  // "medley-scheduler", where empty.
  std::string role_arn;
  std::filesystem::path token_file;
  std::string session_name;
  std::string sts_endpoint;  // "https://sts.us-east-1.amazonaws.com"
};

// Nothing is read yet: Get does, again and again, so that files may appear, change and rotate. Keys
// of a web identity are kept until 5 minutes before they expire. Borrows the fetcher.
std::unique_ptr<AwsCredentials> MakeAwsCredentials(AwsCredentialOptions options, HttpFetcher& fetcher,
                                                   Environment environment);

// One profile of a credentials file (INI). Errors: Unauthenticated naming the profile or key that
// is missing. Pure.
absl::StatusOr<AwsKeys> ParseCredentialsFile(std::string_view text, const std::string& profile);

struct WebIdentityKeys {
  AwsKeys keys;
  base::WallTime expires;
};
// The answer of AssumeRoleWithWebIdentity. Errors: InvalidArgument. Pure.
absl::StatusOr<WebIdentityKeys> ParseAssumeRole(std::string_view body);

}  // namespace medley::sched
