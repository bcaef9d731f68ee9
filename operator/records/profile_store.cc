#include "operator/records/profile_store.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/model/model.h"
#include "common/model/profile.h"
#include "common/model/value_text.h"
#include "operator/api/resources.h"

namespace medley::ops {

absl::StatusOr<std::string> ProfileJsonInLog(std::string_view log) {
  const std::string_view prefix = kProfileLinePrefix;
  for (size_t end = log.size(); end > 0;) {
    const size_t newline = log.rfind('\n', end - 1);
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view line = log.substr(begin, end - begin);
    if (line.substr(0, prefix.size()) == prefix) return std::string(line.substr(prefix.size()));
    end = newline == std::string_view::npos ? 0 : newline;
  }
  return base::NotFound("the profiler's log has no line that begins with '{}'", prefix);
}

absl::StatusOr<model::Profile> ParseProfile(std::string_view json, std::string_view pool) {
  MEDLEY_ASSIGN_OR_RETURN(model::Profile profile, model::ParseProfile(json));
  if (profile.model.layers.empty()) return base::InvalidArgument("the profile has no layers");
  for (const model::Layer& layer : profile.model.layers) {
    const bool measured = std::any_of(layer.profiles.begin(), layer.profiles.end(),
                                      [&](const model::LayerProfile& p) { return p.resource_type == pool; });
    if (!measured)
      return base::InvalidArgument("the profile has no numbers of layer '{}' on pool '{}'", layer.name, pool);
  }
  return profile;
}

std::string LastLine(std::string_view log) {
  while (!log.empty() && (log.back() == '\n' || log.back() == '\r' || log.back() == ' ')) log.remove_suffix(1);
  const size_t newline = log.rfind('\n');
  if (newline != std::string_view::npos) log = log.substr(newline + 1);
  return std::string(log.substr(0, 500));
}

}  // namespace medley::ops
