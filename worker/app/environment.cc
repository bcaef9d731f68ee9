#include "worker/app/environment.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/certificates/job_certificates.h"
#include "common/model/job_schema.h"

namespace medley::worker {
namespace {

absl::StatusOr<bool> Switch(const GetVariable& get, const char* name, bool standard) {
  const std::string value = get(name).value_or(standard ? "1" : "0");
  if (value == "0" || value == "1") return value == "1";
  return base::InvalidArgument("{}: must be 0 or 1, is '{}'", name, value);
}

absl::StatusOr<int> Port(const GetVariable& get, const char* name, int fallback) {
  const std::optional<std::string> text = get(name);
  if (!text.has_value() || text->empty()) return fallback;
  int port = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), port);
  if (error != std::errc() || end != text->data() + text->size() || port < 0 || port > 65535) {
    return base::InvalidArgument("{}: '{}' is not a port number from 0 to 65535", name, *text);
  }
  return port;
}

// How long a profiler measures; `standard` when the variable is not set.
absl::StatusOr<base::nanoseconds> ProfileTime(const GetVariable& get, base::nanoseconds standard) {
  constexpr char kVariable[] = "MEDLEY_PROFILE_TIME";
  const std::optional<std::string> text = get(kVariable);
  if (!text.has_value() || text->empty()) return standard;
  const auto time = base::ParseDuration(*text);
  if (!time.ok()) return base::Annotate(time.status(), kVariable);
  if (*time < base::milliseconds(100) || *time > base::seconds(600)) {
    return base::InvalidArgument("{}: must be from 100ms to 10m, is '{}'", kVariable, *text);
  }
  return *time;
}

// "2,4": numbers of units above 1, at most 64. Empty when it is not set.
absl::StatusOr<std::vector<int>> ProfileSizes(const GetVariable& get) {
  constexpr char kVariable[] = "MEDLEY_PROFILE_SIZES";
  constexpr int kMost = 64;
  const std::string text = get(kVariable).value_or("");
  std::vector<int> sizes;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    int units = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), units);
    if (error != std::errc() || end != word.data() + word.size() || units < 2 || units > kMost) {
      return base::InvalidArgument("{}: must be numbers from 2 to {} with commas between them, is '{}'", kVariable,
                                   kMost, text);
    }
    sizes.push_back(units);
  }
  return sizes;
}

// 0 when it is not set.
absl::StatusOr<int64_t> Term(const GetVariable& get, const char* name) {
  const std::string text = get(name).value_or("");
  int64_t term = 0;
  if (text.empty()) return term;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), term);
  if (error != std::errc() || end != text.data() + text.size() || term < 0) {
    return base::InvalidArgument("{}: '{}' is not a term, which is a number from 0 on", name, text);
  }
  return term;
}

absl::Status Require(const GetVariable& get, const char* name, std::string& value) {
  value = get(name).value_or("");
  return value.empty() ? base::InvalidArgument("the environment variable {} is not set", name) : absl::OkStatus();
}

// The files of the job's Secret.
absl::Status ReadCredentials(const GetVariable& get, Environment& env) {
  constexpr char kVariable[] = "MEDLEY_CREDENTIALS_DIR";
  constexpr int64_t kMost = 1 << 20;
  std::string folder;
  MEDLEY_RETURN_IF_ERROR(Require(get, kVariable, folder));
  const auto read = [&](const char* name, std::string& text, bool optional) {
    auto file = base::ReadFile(std::filesystem::path(folder) / name, kMost);
    if (optional && absl::IsNotFound(file.status())) return absl::OkStatus();
    if (!file.ok()) return base::InvalidArgument("{}: {}", kVariable, base::Message(file.status()));
    text = *std::move(file);
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(read("token", env.token, false));
  MEDLEY_RETURN_IF_ERROR(read("ca.crt", env.ca_certificate, true));
  MEDLEY_RETURN_IF_ERROR(read("ca.key", env.ca_key, true));
  if (env.token.empty()) return base::InvalidArgument("{}: {}/token is empty", kVariable, folder);
  // Half a CA must not make the process talk in plain text.
  if (env.ca_certificate.empty() != env.ca_key.empty()) {
    return base::InvalidArgument("{}: {} has only one of ca.crt and ca.key", kVariable, folder);
  }
  const std::string expected = get("MEDLEY_CREDENTIALS_FINGERPRINT").value_or("");
  if (!expected.empty() && certificates::CredentialsFingerprint(env.token, env.ca_key) != expected) {
    return base::FailedPrecondition(
        "the job's Secret was replaced: its token or CA is not what the operator has made for this job. Delete the "
        "Secret, and the operator creates it again");
  }
  return absl::OkStatus();
}

// The spec with the paths of its files as they are on this machine.
std::string MapSpec(const std::string& map, const std::string& spec_json) {
  auto spec = nlohmann::json::parse(spec_json, nullptr, false);
  model::ForEachPath(spec, [&](std::string& path) { path = MapPath(map, path); });
  return spec.dump();
}

}  // namespace

std::string MapPath(const std::string& map, const std::string& uri) {
  constexpr std::string_view kScheme = "file://";
  const bool is_uri = uri.starts_with(kScheme);
  const std::string path = is_uri ? uri.substr(kScheme.size()) : uri;
  std::string_view best_from, best_to, rest = map;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string_view from = entry.substr(0, equals);
    const bool prefix =
        path.starts_with(from) && (path.size() == from.size() || path[from.size()] == '/' || from.back() == '/');
    if (prefix && from.size() > best_from.size()) {
      best_from = from;
      best_to = entry.substr(equals + 1);
    }
  }
  const std::string mapped = best_from.empty() ? path : std::string(best_to) + path.substr(best_from.size());
  return is_uri ? std::string(kScheme) + mapped : mapped;
}

absl::StatusOr<Environment> ReadEnvironment(const GetVariable& get, Need need) {
  Environment env;
  std::string spec_file;
  MEDLEY_RETURN_IF_ERROR(Require(get, "MEDLEY_SPEC_FILE", spec_file));
  const auto json = base::ReadFile(spec_file);
  if (!json.ok()) return base::InvalidArgument("MEDLEY_SPEC_FILE: {}", base::Message(json.status()));
  MEDLEY_ASSIGN_OR_RETURN(const model::JobSpec as_written, model::ParseJobSpec(*json));
  MEDLEY_RETURN_IF_ERROR(model::Validate(as_written));
  const std::string map = get("MEDLEY_PATH_MAP").value_or("");
  env.spec_json = MapSpec(map, *json);
  MEDLEY_ASSIGN_OR_RETURN(env.spec, model::ParseJobSpec(env.spec_json));
  env.checkpoint_root = MapPath(map, get("MEDLEY_CHECKPOINT_DIR").value_or(""));
  env.termination_log = get("MEDLEY_TERMINATION_LOG").value_or("");
  env.samples_folder = MapPath(map, get("MEDLEY_SAMPLES_DIR").value_or(""));
  constexpr std::string_view kScheme = "file://";
  const std::string& from = env.spec.checkpoint.from;
  env.continue_from = from.starts_with(kScheme) ? from.substr(kScheme.size()) : from;
  env.pool = get("MEDLEY_POOL").value_or("");
  MEDLEY_ASSIGN_OR_RETURN(env.share_memory, Switch(get, "MEDLEY_SHARE_MEMORY", true));
  MEDLEY_ASSIGN_OR_RETURN(env.plain_nccl, Switch(get, "MEDLEY_PLAIN_NCCL", false));
  MEDLEY_ASSIGN_OR_RETURN(env.graphs, Switch(get, "MEDLEY_GRAPHS", true));
  if (get("MEDLEY_ROWS_AHEAD").has_value()) {
    MEDLEY_ASSIGN_OR_RETURN(env.rows_ahead, Switch(get, "MEDLEY_ROWS_AHEAD", false));
  }
  MEDLEY_ASSIGN_OR_RETURN(env.profile_time, ProfileTime(get, env.profile_time));
  MEDLEY_ASSIGN_OR_RETURN(env.profile_sizes, ProfileSizes(get));
  const std::string device = get("MEDLEY_DEVICE").value_or("auto");
  if (device != "auto" && device != "cpu" && device != "cuda") {
    return base::InvalidArgument("MEDLEY_DEVICE: must be auto, cpu or cuda, is '{}'", device);
  }
  env.device = device == "cuda" ? DeviceChoice::kCuda : device == "cpu" ? DeviceChoice::kCpu : DeviceChoice::kAuto;
  if (const std::string memory = get("MEDLEY_DEVICE_MEMORY").value_or(""); !memory.empty()) {
    if (!absl::SimpleAtoi(memory, &env.device_memory) || env.device_memory <= 0) {
      return base::InvalidArgument("MEDLEY_DEVICE_MEMORY: must be a number of bytes above 0, is '{}'", memory);
    }
  }
  env.job_name = get("MEDLEY_JOB_NAME").value_or("");
  env.job_uid = get("MEDLEY_JOB_UID").value_or("");
  env.member = get("MEDLEY_MEMBER").value_or("");
  if (need == Need::kSpec) return env;
  MEDLEY_RETURN_IF_ERROR(Require(get, "MEDLEY_JOB_UID", env.job_uid));
  MEDLEY_RETURN_IF_ERROR(ReadCredentials(get, env));
  MEDLEY_RETURN_IF_ERROR(Require(get, "MEDLEY_POD_IP", env.pod_ip));
  if (const std::string lifetime = get("MEDLEY_CERTIFICATE_LIFETIME").value_or(""); !lifetime.empty()) {
    const auto parsed = base::ParseDuration(lifetime);
    if (!parsed.ok()) return base::Annotate(parsed.status(), "MEDLEY_CERTIFICATE_LIFETIME");
    env.certificate_lifetime = *parsed;
  }
  MEDLEY_ASSIGN_OR_RETURN(env.listen_port, Port(get, "MEDLEY_LISTEN_PORT", env.listen_port));
  MEDLEY_ASSIGN_OR_RETURN(env.metrics_port, Port(get, "MEDLEY_METRICS_PORT", env.metrics_port));
  env.metrics_token_digests = get("MEDLEY_METRICS_TOKEN_SHA256").value_or("");
  MEDLEY_ASSIGN_OR_RETURN(env.coordinator_term, Term(get, "MEDLEY_COORDINATOR_TERM"));
  if (need == Need::kCoordinator) return env;
  MEDLEY_RETURN_IF_ERROR(Require(get, "MEDLEY_MEMBER", env.member));
  MEDLEY_RETURN_IF_ERROR(Require(get, "MEDLEY_COORDINATOR", env.coordinator));
  return env;
}

}  // namespace medley::worker
