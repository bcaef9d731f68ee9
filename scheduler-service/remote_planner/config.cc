#include "scheduler-service/remote_planner/config.h"

#include <algorithm>
#include <set>

#include "common/base/file.h"
#include "common/base/host_port.h"
#include "common/base/status.h"
#include "common/document/reader.h"

namespace medley::sched {
namespace {

using document::Reader;

constexpr int64_t kMaxPlannersFileBytes = 1 << 20;
constexpr size_t kMaxPlanners = 16;
constexpr size_t kMaxNameLength = 63;
constexpr size_t kMaxDescriptionLength = 500;
constexpr double kMaxTimeoutSeconds = 3600;
constexpr std::string_view kUnix = "unix:";

bool IsName(std::string_view text) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= kMaxNameLength && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), allowed);
}

// Errors: InvalidArgument, FailedPrecondition.
absl::Status CheckAddress(const RemotePlannerConfig& planner, const std::string& path, bool insecure) {
  if (planner.address.starts_with(kUnix)) {
    if (planner.address.size() > kUnix.size()) return absl::OkStatus();
    return base::InvalidArgument("{}: has no path after 'unix:'", path);
  }
  const auto parts = base::SplitHostPort(planner.address);
  if (!parts.ok()) return base::Annotate(parts.status(), path);
  if (parts->host.empty() || parts->port == 0) {
    return base::InvalidArgument("{}: must be HOST:PORT or unix:PATH, is '{}'", path, planner.address);
  }
  if (planner.tls || insecure || base::IsLoopback(parts->host)) return absl::OkStatus();
  return base::FailedPrecondition("{}: {} is not a loopback address: set tls, or allow plain text with --insecure",
                                  path, parts->host);
}

absl::Status ReadPlanner(const Reader& node, const std::set<std::string>& taken, bool insecure,
                         RemotePlannerConfig& out) {
  out.name = node.RequiredString("name");
  if (!out.name.empty() && !IsName(out.name)) {
    node.Fail("name", fmt::format("must have at most {} lower-case letters, digits and inner hyphens", kMaxNameLength));
  }
  if (taken.contains(out.name)) node.Fail("name", fmt::format("'{}' is the name of another planner", out.name));
  out.address = node.RequiredString("address");
  out.planner = node.String("planner", out.name);
  out.description = node.String("description", "a planner at " + out.address);
  if (out.description.size() > kMaxDescriptionLength) {
    node.Fail("description", fmt::format("must have at most {} bytes", kMaxDescriptionLength));
  }
  out.timeout_seconds = node.Number("timeoutSeconds", kMaxTimeoutSeconds);
  if (!(out.timeout_seconds > 0 && out.timeout_seconds <= kMaxTimeoutSeconds)) {
    node.Fail("timeoutSeconds", fmt::format("must be above 0 and at most {}", kMaxTimeoutSeconds));
  }
  if (node.Has("tls")) {
    const Reader tls = node.Child("tls");
    out.tls = RemotePlannerTls{tls.String("ca", ""), tls.String("serverName", "")};
  }
  out.token_file = node.String("tokenFile", "");
  MEDLEY_RETURN_IF_ERROR(node.Finish());
  return CheckAddress(out, node.path() + ".address", insecure);
}

}  // namespace

absl::StatusOr<std::vector<RemotePlannerConfig>> ParseRemotePlanners(std::string_view text,
                                                                     const std::vector<std::string>& taken,
                                                                     bool insecure) {
  MEDLEY_ASSIGN_OR_RETURN(const Reader root, Reader::Parse(text));
  std::vector<RemotePlannerConfig> planners;
  std::set<std::string> names(taken.begin(), taken.end());
  root.Require({"planners"});
  for (const Reader& node : root.List("planners")) {
    MEDLEY_RETURN_IF_ERROR(ReadPlanner(node, names, insecure, planners.emplace_back()));
    names.insert(planners.back().name);
  }
  MEDLEY_RETURN_IF_ERROR(root.Finish());
  if (planners.size() > kMaxPlanners) {
    return base::InvalidArgument("planners: has {} entries, at most {} are allowed", planners.size(), kMaxPlanners);
  }
  return planners;
}

absl::StatusOr<std::vector<RemotePlannerConfig>> LoadRemotePlanners(const std::filesystem::path& file,
                                                                    const std::vector<std::string>& taken,
                                                                    bool insecure) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, kMaxPlannersFileBytes));
  auto planners = ParseRemotePlanners(text, taken, insecure);
  if (!planners.ok()) return base::Annotate(planners.status(), file.string());
  return planners;
}

}  // namespace medley::sched
