// How object stores are reached, and with which keys. Plain values.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "common/aws/sigv4.h"

namespace medley::object_store {

struct Settings {
  std::string endpoint;              // of s3://, "https://host:9000"; empty: AWS
  std::string region = "us-east-1";  // of s3://
  bool path_style = false;           // https://host/bucket/key instead of https://bucket.host/key
  aws::Keys keys;                    // of s3://; without an id, requests are not signed, as for public buckets
  std::string gs_endpoint = "https://storage.googleapis.com";
  aws::Keys gs_keys;        // HMAC keys of Google Cloud Storage
  std::string gs_token;     // or an OAuth token; without both, requests carry neither
  std::string authorities;  // PEM of CAs that are trusted beside those of the system; empty: none
};

// The variables that ReadSettings reads, for those who pass them on to other processes.
std::span<const char* const> SettingVariables();

// Returns the value of an environment variable, or nullopt when it is not set.
using GetVariable = std::function<std::optional<std::string>(const char* name)>;

// Reads the keys from files of the folder that MEDLEY_STORAGE_KEYS_DIR names, one for each variable that is a key, and
// all else from `get`; a key without a file too. So a Secret that is mounted becomes no environment, which a process
// hands on to others, and none of its other keys is read.
GetVariable WithKeyFiles(GetVariable get);

// Reads the variables of README.md, among them the usual ones of AWS's tools. Values are trimmed: a Secret that was
// made from a file ends in a line feed. Errors: InvalidArgument naming the variable, never its value; those of reading
// the file of AWS_CA_BUNDLE.
absl::StatusOr<Settings> ReadSettings(const GetVariable& get);

}  // namespace medley::object_store
