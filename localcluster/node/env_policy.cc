#include "localcluster/node/env_policy.h"

#include <algorithm>
#include <array>

#include "common/base/status.h"

namespace medley::localcluster {
namespace {

// Whole families: the dynamic loader; glibc's tunables and allocator; tools that OpenMP, CUDA and PyTorch's profiler
// load; what OpenSSL loads; interpreters.
constexpr std::array<std::string_view, 14> kPrefixes = {"LD_",     "GLIBC_",   "MALLOC_", "OMP_TOOL", "CUDA_INJECTION",
                                                        "KINETO",  "OPENSSL_", "PYTHON",  "PERL5",    "PERLLIB",
                                                        "RUBYLIB", "RUBYOPT",  "LUA_",    "BASH_"};
// From glibc: modules of iconv, locales, message catalogues, zones, the resolver, and tools that write files. Then:
// where programs are found, what shells and runtimes do at their start.
constexpr std::array<std::string_view, 26> kNames = {"GCONV_PATH",
                                                     "GETCONF_DIR",
                                                     "LOCPATH",
                                                     "NLSPATH",
                                                     "TZDIR",
                                                     "HOSTALIASES",
                                                     "LOCALDOMAIN",
                                                     "NIS_PATH",
                                                     "RES_OPTIONS",
                                                     "RESOLV_HOST_CONF",
                                                     "RESOLV_MULTI",
                                                     "RESOLV_ADD_TRIM_DOMAINS",
                                                     "RESOLV_OVERRIDE_TRIM_DOMAINS",
                                                     "RESOLV_SPOOF_CHECK",
                                                     "MEMUSAGE_OUTPUT",
                                                     "PCPROFILE_OUTPUT",
                                                     "SEGFAULT_SIGNALS",
                                                     "PATH",
                                                     "IFS",
                                                     "SHELLOPTS",
                                                     "NODE_OPTIONS",
                                                     "NODE_PATH",
                                                     "JAVA_TOOL_OPTIONS",
                                                     "JDK_JAVA_OPTIONS",
                                                     "OCL_ICD_VENDORS",
                                                     "VK_ICD_FILENAMES"};
constexpr std::string_view kSanitizers = "SAN_OPTIONS";  // of ASan, LSan, TSan, UBSan, MSan

}  // namespace

absl::Status CheckVariableName(std::string_view name) {
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~' && c != '='; });
  if (name.empty() || !printable) {
    return base::InvalidArgument(
        "env: '{}' is not a name: it must have only visible ASCII characters, no spaces and no '='", name);
  }
  const bool refused = std::find(kNames.begin(), kNames.end(), name) != kNames.end() || name.ends_with(kSanitizers) ||
                       std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                   [&](std::string_view prefix) { return name.starts_with(prefix); });
  if (!refused) return absl::OkStatus();
  return base::PermissionDenied(
      "env: a pod of this node may not set {}: it has power over which code the program loads or runs; remove it from "
      "the pod's env and envFrom",
      name);
}

}  // namespace medley::localcluster
