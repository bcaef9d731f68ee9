#include "scheduler-service/feeds/aws_credentials.h"

#include <optional>

#include "common/aws/xml_reader.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/base/url.h"
#include "scheduler-service/feeds/aws_error.h"
#include "scheduler-service/feeds/parsed_prices.h"

namespace medley::sched {
namespace {

constexpr int64_t kMaxFile = 1 << 20;
constexpr base::seconds kRefreshBefore{300};

class FromEnvironment final : public AwsCredentials {
 public:
  explicit FromEnvironment(const Environment& environment) : environment_(environment) {}
  bool IsSetUp() const { return !environment_("AWS_ACCESS_KEY_ID").empty(); }
  absl::StatusOr<aws::Keys> Get(base::WallTime, std::stop_token) override {
    aws::Keys keys{environment_("AWS_ACCESS_KEY_ID"), environment_("AWS_SECRET_ACCESS_KEY"),
                   environment_("AWS_SESSION_TOKEN")};
    if (keys.access_key_id.empty()) return base::Unauthenticated("AWS_ACCESS_KEY_ID is not set");
    if (keys.secret_access_key.empty()) return base::Unauthenticated("AWS_SECRET_ACCESS_KEY is not set");
    return keys;
  }

 private:
  const Environment& environment_;
};

class FromFile final : public AwsCredentials {
 public:
  FromFile(const AwsCredentialOptions& options, const Environment& environment)
      : options_(options), environment_(environment) {}
  bool IsSetUp() const {
    std::error_code error;
    return std::filesystem::exists(Path(), error);
  }
  absl::StatusOr<aws::Keys> Get(base::WallTime, std::stop_token) override {
    const absl::StatusOr<std::string> text = base::ReadFile(Path(), kMaxFile);
    if (!text.ok()) return base::Unauthenticated("credentials file: {}", base::Message(text.status()));
    std::string profile = options_.profile.empty() ? environment_("AWS_PROFILE") : options_.profile;
    if (profile.empty()) profile = "default";
    absl::StatusOr<aws::Keys> keys = ParseCredentialsFile(*text, profile);
    if (!keys.ok()) return base::Annotate(keys.status(), Path().string());
    return keys;
  }

 private:
  std::filesystem::path Path() const {
    if (!options_.file.empty()) return options_.file;
    if (const std::string named = environment_("AWS_SHARED_CREDENTIALS_FILE"); !named.empty()) return named;
    return std::filesystem::path(environment_("HOME")) / ".aws" / "credentials";
  }
  const AwsCredentialOptions& options_;
  const Environment& environment_;
};

class FromWebIdentity final : public AwsCredentials {
 public:
  FromWebIdentity(const AwsCredentialOptions& options, HttpFetcher& fetcher, const Environment& environment)
      : options_(options), fetcher_(fetcher), environment_(environment) {}
  bool IsSetUp() const { return !TokenFile().empty(); }
  void Forget() override { kept_.reset(); }

  absl::StatusOr<aws::Keys> Get(base::WallTime now, std::stop_token stop) override {
    if (kept_ && now < kept_->expires - kRefreshBefore && now >= taken_) return kept_->keys;
    absl::StatusOr<WebIdentityKeys> fresh = Assume(stop);
    if (!fresh.ok()) {
      // The old keys are still valid for some minutes.
      if (kept_ && now < kept_->expires && now >= taken_) return kept_->keys;
      return fresh.status();
    }
    taken_ = now;
    kept_ = *std::move(fresh);
    return kept_->keys;
  }

 private:
  std::filesystem::path TokenFile() const {
    return options_.token_file.empty() ? std::filesystem::path(environment_("AWS_WEB_IDENTITY_TOKEN_FILE"))
                                       : options_.token_file;
  }

  absl::StatusOr<WebIdentityKeys> Assume(std::stop_token stop) {
    const std::string role = options_.role_arn.empty() ? environment_("AWS_ROLE_ARN") : options_.role_arn;
    std::string session = options_.session_name.empty() ? environment_("AWS_ROLE_SESSION_NAME") : options_.session_name;
    if (session.empty()) session = "medley-scheduler";
    if (role.empty()) return base::Unauthenticated("web identity: no role: set AWS_ROLE_ARN or roleArn");
    if (TokenFile().empty()) {
      return base::Unauthenticated(
          "web identity: no token file: set AWS_WEB_IDENTITY_TOKEN_FILE or webIdentityTokenFile");
    }
    const absl::StatusOr<std::string> token = base::ReadFile(TokenFile(), kMaxFile);
    if (!token.ok()) return base::Unauthenticated("web identity token: {}", base::Message(token.status()));
    FetchRequest request;
    request.url = options_.sts_endpoint.ends_with('/') ? options_.sts_endpoint : options_.sts_endpoint + "/";
    request.form = base::QueryEncode({{"Action", "AssumeRoleWithWebIdentity"},
                                      {"Version", "2011-06-15"},
                                      {"RoleArn", role},
                                      {"RoleSessionName", session},
                                      {"DurationSeconds", "3600"},
                                      {"WebIdentityToken", std::string(base::Trim(*token))}});
    MEDLEY_ASSIGN_OR_RETURN(const FetchReply reply, fetcher_.Fetch(request, stop));
    MEDLEY_RETURN_IF_ERROR(StatusOfAwsReply(reply, "AssumeRoleWithWebIdentity " + role));
    absl::StatusOr<WebIdentityKeys> keys = ParseAssumeRole(reply.body);
    if (!keys.ok()) return base::Annotate(keys.status(), "AssumeRoleWithWebIdentity");
    return keys;
  }

  const AwsCredentialOptions& options_;
  HttpFetcher& fetcher_;
  const Environment& environment_;
  std::optional<WebIdentityKeys> kept_;
  base::WallTime taken_;
};

// Owns the options that its sources borrow.
class Chain final : public AwsCredentials {
 public:
  Chain(AwsCredentialOptions options, HttpFetcher& fetcher, Environment environment)
      : options_(std::move(options)), environment_(std::move(environment)), web_(options_, fetcher, environment_) {}
  void Forget() override { web_.Forget(); }

  absl::StatusOr<aws::Keys> Get(base::WallTime now, std::stop_token stop) override {
    if (options_.kind == "environment") return from_environment_.Get(now, stop);
    if (options_.kind == "file") return file_.Get(now, stop);
    if (options_.kind == "web-identity") return web_.Get(now, stop);
    if (from_environment_.IsSetUp()) return from_environment_.Get(now, stop);
    if (web_.IsSetUp()) return web_.Get(now, stop);
    if (file_.IsSetUp()) return file_.Get(now, stop);
    return base::Unauthenticated(
        "no AWS credentials: set AWS_ACCESS_KEY_ID or AWS_WEB_IDENTITY_TOKEN_FILE, or provide a credentials file");
  }

 private:
  const AwsCredentialOptions options_;
  const Environment environment_;
  FromEnvironment from_environment_{environment_};
  FromFile file_{options_, environment_};
  FromWebIdentity web_;
};

}  // namespace

std::unique_ptr<AwsCredentials> MakeAwsCredentials(AwsCredentialOptions options, HttpFetcher& fetcher,
                                                   Environment environment) {
  return std::make_unique<Chain>(std::move(options), fetcher, std::move(environment));
}

absl::StatusOr<aws::Keys> ParseCredentialsFile(std::string_view text, const std::string& profile) {
  aws::Keys keys;
  bool inside = false, found = false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = base::Trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      inside = line.back() == ']' && base::Trim(line.substr(1, line.size() - 2)) == profile;
      found = found || inside;
      continue;
    }
    const size_t equals = line.find('=');
    if (!inside || equals == std::string_view::npos) continue;
    const std::string_view name = base::Trim(line.substr(0, equals));
    const std::string value(base::Trim(line.substr(equals + 1)));
    if (name == "aws_access_key_id") keys.access_key_id = value;
    if (name == "aws_secret_access_key") keys.secret_access_key = value;
    if (name == "aws_session_token") keys.session_token = value;
  }
  if (!found) return base::Unauthenticated("no profile '{}' in the credentials file", Quoted(profile));
  if (keys.access_key_id.empty()) return base::Unauthenticated("profile '{}': no aws_access_key_id", profile);
  if (keys.secret_access_key.empty()) return base::Unauthenticated("profile '{}': no aws_secret_access_key", profile);
  return keys;
}

absl::StatusOr<WebIdentityKeys> ParseAssumeRole(std::string_view body) {
  const std::string root = "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/";
  WebIdentityKeys out;
  std::string expires;
  MEDLEY_RETURN_IF_ERROR(aws::ReadXml(
      body, [](const std::string&) { return absl::OkStatus(); },
      [&](const std::string& path, std::string_view text) {
        if (path == root + "AccessKeyId") out.keys.access_key_id = std::string(text);
        if (path == root + "SecretAccessKey") out.keys.secret_access_key = std::string(text);
        if (path == root + "SessionToken") out.keys.session_token = std::string(text);
        if (path == root + "Expiration") expires = std::string(text);
        return absl::OkStatus();
      }));
  if (out.keys.access_key_id.empty()) return base::InvalidArgument("Credentials/AccessKeyId is missing");
  if (out.keys.secret_access_key.empty()) return base::InvalidArgument("Credentials/SecretAccessKey is missing");
  if (out.keys.session_token.empty()) return base::InvalidArgument("Credentials/SessionToken is missing");
  const absl::StatusOr<base::WallTime> time = base::ParseTime(expires);
  if (!time.ok()) return base::InvalidArgument("Credentials/Expiration: '{}' is not a time", Quoted(expires));
  out.expires = *time;
  return out;
}

}  // namespace medley::sched
