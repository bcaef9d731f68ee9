// The keys that sign requests to AWS, from the same places where AWS's own tools look for them.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "common/aws/sigv4.h"
#include "common/base/clock.h"
#include "scheduler-service/feeds/http_fetcher.h"

namespace medley::sched {

// Returns the value of an environment variable, or an empty string. A parameter, so that tests need no real variables.
using Environment = std::function<std::string(const std::string& name)>;

// Not thread-safe.
class AwsCredentials {
 public:
  virtual ~AwsCredentials() = default;
  // Errors: Unauthenticated naming what is missing; those of the fetcher and of STS.
  virtual absl::StatusOr<aws::Keys> Get(base::WallTime now, std::stop_token stop) = 0;
  // Drops cached keys. Call it after AWS rejected them.
  virtual void Forget() {}
};

struct AwsCredentialOptions {
  // "environment", "file", "web-identity" or "auto". "auto" uses the first one that is configured, in the order
  // environment, web-identity, file.
  std::string kind = "auto";
  // For "file". Defaults: AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials; AWS_PROFILE or "default".
  std::filesystem::path file;
  std::string profile;
  // For "web-identity". Defaults: AWS_ROLE_ARN; AWS_WEB_IDENTITY_TOKEN_FILE; AWS_ROLE_SESSION_NAME or
  // "medley-scheduler".
  std::string role_arn;
  std::filesystem::path token_file;
  std::string session_name;
  std::string sts_endpoint;  // "https://sts.us-east-1.amazonaws.com"
};

// Reads nothing: every call of Get reads the sources anew, so files may appear, change and rotate. Keys of a web
// identity are cached until 5 minutes before they expire. Borrows the fetcher.
std::unique_ptr<AwsCredentials> MakeAwsCredentials(AwsCredentialOptions options, HttpFetcher& fetcher,
                                                   Environment environment);

// Reads one profile from the text of a credentials file (INI). Errors: Unauthenticated naming the missing profile or
// key. Pure.
absl::StatusOr<aws::Keys> ParseCredentialsFile(std::string_view text, const std::string& profile);

struct WebIdentityKeys {
  aws::Keys keys;
  base::WallTime expires;
};
// Parses the response of AssumeRoleWithWebIdentity. Errors: InvalidArgument. Pure.
absl::StatusOr<WebIdentityKeys> ParseAssumeRole(std::string_view body);

}  // namespace medley::sched
