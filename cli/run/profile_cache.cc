#include "cli/run/profile_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/model/fingerprint.h"
#include "common/model/job_spec.h"
#include "common/model/profile.h"
#include "kube/json_access.h"
#include "localcluster/node/machine.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/api/training_job.h"
#include "operator/records/profile_store.h"

namespace medley::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kCacheFormat = 1;
constexpr int64_t kMostProfileBytes = 8 << 20;
constexpr size_t kMostStamps = 10'000;  // files of a folder of data

// "name:size:time", so that a file with other content has another text.
std::string StampOf(const fs::path& file) {
  struct stat info = {};
  if (stat(file.c_str(), &info) != 0) return file.string() + ":absent";
  return fmt::format("{}:{}:{}.{:09}", file.string(), info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

// For a file, or for all files of a folder. A pattern such as part-*.csv stands for its folder.
std::string StampsOf(fs::path path) {
  if (path.filename().string().find_first_of("*?[") != std::string::npos) path = path.parent_path();
  std::error_code error;
  if (!fs::is_directory(path, error)) return StampOf(path);
  std::vector<std::string> stamps;
  for (auto at = fs::recursive_directory_iterator(path, error); !error && at != fs::end(at); at.increment(error)) {
    stamps.push_back(StampOf(at->path()));
    if (stamps.size() > kMostStamps) return StampOf(path) + ":many";
  }
  std::sort(stamps.begin(), stamps.end());
  std::string all;
  for (const std::string& stamp : stamps) all += stamp + "|";
  return all;
}

// Calls `visit` with every string of the tree that is an address of a file.
template <typename Visit>
void ForEachUri(const kube::Json& json, const Visit& visit) {
  if (json.is_string() && json.get_ref<const std::string&>().starts_with("file:///")) {
    visit(json.get<std::string>().substr(std::string_view("file://").size()));
  }
  if (!json.is_structured()) return;
  for (const kube::Json& child : json) ForEachUri(child, visit);
}

// The data files, with the folder of this machine for that of the pods.
std::string DataStamps(const kube::Object& job) {
  const std::string host = job.String("/spec/data/volume/hostPath/path");
  const std::string mount = job.String("/spec/data/volume/mountPath");
  std::string all;
  const auto visit = [&](const std::string& path) {
    const bool mounted = !host.empty() && !mount.empty() && path.starts_with(mount);
    all += StampsOf(mounted ? fs::path(host + path.substr(mount.size())) : fs::path(path));
  };
  ForEachUri(job.At("/spec/data"), visit);
  ForEachUri(job.At("/spec/model"), visit);
  return all;
}

// What a pod of the job is, besides its model and data.
kube::Json TemplatesOf(const kube::Object& job) {
  kube::Json templates = job.At("/spec");
  if (!templates.is_object()) return templates;
  for (const char* name :
       {"model", "data", "training", "objective", "runPolicy", "checkpoint", "planner", "elasticity", "profiling"}) {
    templates.erase(name);
  }
  return templates;
}

}  // namespace

std::string ProfileHashOfJob(const kube::Object& job) {
  const auto parsed = ops::TrainingJob::FromObject(job);
  if (!parsed.ok()) return "";
  const auto spec = model::ParseJobSpec(kube::Dump(parsed->spec));
  return spec.ok() && model::Validate(*spec).ok() ? model::ProfileHash(parsed->spec) : "";
}

std::optional<fs::path> CacheFolder(const char* (*variable)(const char* name)) {
  const auto value = [&](const char* name) {
    const char* text = variable(name);
    return text == nullptr ? std::string() : std::string(text);
  };
  if (const std::string own = value("MEDLEY_CACHE"); !own.empty()) {
    return own == "off" ? std::nullopt : std::optional<fs::path>(own);
  }
  if (const std::string cache = value("XDG_CACHE_HOME"); cache.starts_with("/")) return fs::path(cache) / "medley";
  if (const std::string home = value("HOME"); home.starts_with("/")) return fs::path(home) / ".cache" / "medley";
  return std::nullopt;
}

std::string ProcessorText() {
  std::ifstream file("/proc/cpuinfo");
  std::string text = localcluster::ThisMachine().ToString();
  std::string line;
  for (int found = 0; found < 2 && std::getline(file, line);) {
    if (!line.starts_with("model name") && !line.starts_with("flags")) continue;
    text += "|" + line;
    ++found;
  }
  return text;
}

std::string ProfileKey(const kube::Object& job, const kube::Object& pool, const std::string& processor,
                       const fs::path& worker) {
  const std::string hash = ProfileHashOfJob(job);
  if (hash.empty()) return "";
  kube::Json spec = pool.At("/spec");
  for (const char* field : {"limit", "price", "offering", "namespaces", "scaling", "provisionTimeout"}) {
    if (spec.is_object()) spec.erase(field);
  }
  fs::path torch = worker;  // which computes models from PyTorch
  torch += "-torch";
  std::string text = fmt::format("{}|{}|{}|{}|{}|{}|", kCacheFormat, hash, processor, StampOf(worker), StampOf(torch),
                                 pool.key().name);
  text += kube::Dump(spec) + kube::Dump(pool.At("/metadata/annotations")) + kube::Dump(TemplatesOf(job));
  return base::HashHex(text + DataStamps(job)) + base::HashHex("2" + text + DataStamps(job));
}

std::optional<KeptProfile> ProfileCache::Find(const std::string& key, const kube::Object& job,
                                              const std::string& pool) const {
  if (key.empty()) return std::nullopt;
  const fs::path file = folder_ / (key + ".json");
  const auto text = base::ReadFile(file, kMostProfileBytes);
  if (!text.ok()) return std::nullopt;
  const auto json = document::ParseJson(*text);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  const std::string profile = kube::GetString(*json, "profile");
  const std::string measured = kube::GetString(*json, "measured");
  const auto time = base::ParseTime(measured);
  if (!time.ok() || clock_.Now() - *time > kProfileAge || clock_.Now() < *time) return std::nullopt;
  if (!ops::ParseProfile(profile, pool).ok()) return std::nullopt;
  const std::string hash = ProfileHashOfJob(job);
  KeptProfile kept{pool,
                   kube::Object(kube::resources::ConfigMaps(), {job.key().ns, ops::ProfileConfigMapName(hash, pool)}),
                   measured};
  kept.config_map.SetLabel(ops::kProfileLabel, hash);
  kept.config_map.SetLabel(ops::kPoolLabel, pool);
  kept.config_map.SetLabel("app.kubernetes.io/managed-by", "medley-operator");
  kept.config_map.mutable_json()["data"] = {{"profile.json", profile}};
  std::error_code ignored;
  fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
  return kept;
}

absl::Status ProfileCache::Keep(const std::string& key, const kube::Object& config_map) const {
  const std::string profile = config_map.String("/data/profile.json");
  if (key.empty() || profile.empty()) return base::InvalidArgument("no profile to keep");
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return base::ErrnoStatus(error.value(), "creating " + folder_.string());
  fs::permissions(folder_, fs::perms::owner_all, error);
  const kube::Json json = {{"profile", profile}, {"measured", base::FormatTime(clock_.Now())}};
  const std::string text = kube::Dump(json);
  if (static_cast<int64_t>(text.size()) > kMostProfileBytes) {
    return base::ResourceExhausted("the profile has {} bytes, of which at most {} are kept", text.size(),
                                   kMostProfileBytes);
  }
  MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(folder_ / (key + ".json"), text));
  return Prune();
}

absl::Status ProfileCache::Prune() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder_, error); !error && at != fs::end(at); at.increment(error)) {
    std::error_code absent;
    const fs::file_time_type used = at->last_write_time(absent);
    if (!absent && at->path().extension() == ".json") files.emplace_back(used, at->path());
  }
  if (error) return base::ErrnoStatus(error.value(), "reading " + folder_.string());
  if (files.size() <= kMostProfiles) return absl::OkStatus();
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i < files.size() - kMostProfiles; ++i) fs::remove(files[i].second, error);
  return absl::OkStatus();
}

}  // namespace medley::cli
