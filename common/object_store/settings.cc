#include "common/object_store/settings.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/text.h"

namespace medley::object_store {
namespace {

constexpr int64_t kMostCaBundle = int64_t{4} << 20;
constexpr int64_t kMostKey = int64_t{1} << 16;

class Variables {
 public:
  explicit Variables(const GetVariable& get) : get_(get) {}

  // The first of the variables that is set; they go into headers and URLs, so only visible ASCII is taken.
  absl::StatusOr<std::string> Text(std::initializer_list<const char*> names) const {
    for (const char* const name : names) {
      const std::string raw = get_(name).value_or("");
      std::string value(base::Trim(raw));
      if (value.empty()) continue;
      if (!std::ranges::all_of(value, [](char c) { return c > ' ' && c < 0x7f; })) {
        return base::InvalidArgument("{}: only visible ASCII characters are allowed", name);
      }
      return value;
    }
    return std::string();
  }

  absl::StatusOr<std::string> Endpoint(std::initializer_list<const char*> names) const {
    MEDLEY_ASSIGN_OR_RETURN(std::string value, Text(names));
    while (value.ends_with('/')) value.pop_back();
    const bool http = value.starts_with("http://") || value.starts_with("https://");
    const size_t host = value.find("://") + 3;
    if (!value.empty() && (!http || host >= value.size() || value.find_first_of("/?#@", host) != std::string::npos)) {
      return base::InvalidArgument("{}: must be https://HOST or https://HOST:PORT", *names.begin());
    }
    return value;
  }

  absl::StatusOr<aws::Keys> Keys(const char* id, const char* secret, const char* token) const {
    aws::Keys keys;
    MEDLEY_ASSIGN_OR_RETURN(keys.access_key_id, Text({id}));
    MEDLEY_ASSIGN_OR_RETURN(keys.secret_access_key, Text({secret}));
    if (token != nullptr) {
      MEDLEY_ASSIGN_OR_RETURN(keys.session_token, Text({token}));
    }
    if (keys.access_key_id.empty() != keys.secret_access_key.empty()) {
      return base::InvalidArgument("only one of {} and {} is set", id, secret);
    }
    return keys;
  }

 private:
  const GetVariable& get_;
};

}  // namespace

std::span<const char* const> SettingVariables() {
  static constexpr const char* kVariables[] = {"AWS_ACCESS_KEY_ID",    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                                               "AWS_REGION",           "AWS_DEFAULT_REGION",    "AWS_ENDPOINT_URL_S3",
                                               "AWS_ENDPOINT_URL",     "MEDLEY_S3_PATH_STYLE",  "GS_ACCESS_KEY_ID",
                                               "GS_SECRET_ACCESS_KEY", "GS_OAUTH_TOKEN",        "GS_ENDPOINT_URL",
                                               "MEDLEY_STORAGE_CA",    "AWS_CA_BUNDLE"};
  return kVariables;
}

GetVariable WithKeyFiles(GetVariable get) {
  const std::string folder = get("MEDLEY_STORAGE_KEYS_DIR").value_or("");
  if (folder.empty()) return get;
  return [folder, get = std::move(get)](const char* name) -> std::optional<std::string> {
    constexpr std::string_view kKeys[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                                          "GS_ACCESS_KEY_ID",  "GS_SECRET_ACCESS_KEY",  "GS_OAUTH_TOKEN"};
    if (std::ranges::find(kKeys, std::string_view(name)) == std::end(kKeys)) return get(name);
    absl::StatusOr<std::string> text = base::ReadFile(std::filesystem::path(folder) / name, kMostKey);
    return text.ok() ? std::optional<std::string>(*std::move(text)) : get(name);
  };
}

absl::StatusOr<Settings> ReadSettings(const GetVariable& get) {
  Settings settings;
  const Variables variables(get);
  MEDLEY_ASSIGN_OR_RETURN(settings.endpoint, variables.Endpoint({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}));
  MEDLEY_ASSIGN_OR_RETURN(std::string region, variables.Text({"AWS_REGION", "AWS_DEFAULT_REGION"}));
  if (!region.empty()) settings.region = std::move(region);
  MEDLEY_ASSIGN_OR_RETURN(const std::string style, variables.Text({"MEDLEY_S3_PATH_STYLE"}));
  if (style != "" && style != "0" && style != "1") return base::InvalidArgument("MEDLEY_S3_PATH_STYLE: must be 0 or 1");
  settings.path_style = style == "1";
  MEDLEY_ASSIGN_OR_RETURN(settings.keys,
                          variables.Keys("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"));
  MEDLEY_ASSIGN_OR_RETURN(std::string gs_endpoint, variables.Endpoint({"GS_ENDPOINT_URL"}));
  if (!gs_endpoint.empty()) settings.gs_endpoint = std::move(gs_endpoint);
  MEDLEY_ASSIGN_OR_RETURN(settings.gs_keys, variables.Keys("GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY", nullptr));
  MEDLEY_ASSIGN_OR_RETURN(settings.gs_token, variables.Text({"GS_OAUTH_TOKEN"}));
  if (!settings.gs_token.empty() && !settings.gs_endpoint.starts_with("https://")) {
    return base::InvalidArgument("GS_OAUTH_TOKEN: is sent over https only, but GS_ENDPOINT_URL has no TLS");
  }
  settings.authorities = get("MEDLEY_STORAGE_CA").value_or("");
  if (const std::string file = get("AWS_CA_BUNDLE").value_or(""); settings.authorities.empty() && !file.empty()) {
    absl::StatusOr<std::string> text = base::ReadFile(file, kMostCaBundle);
    if (!text.ok()) return base::Annotate(text.status(), "AWS_CA_BUNDLE");
    settings.authorities = *std::move(text);
  }
  return settings;
}

}  // namespace medley::object_store
