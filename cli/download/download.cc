#include "cli/download/download.h"

#include <fmt/format.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <utility>

#include "cli/cluster/story_parts.h"
#include "cli/download/file_list.h"
#include "cli/download/reader_pod.h"
#include "cli/run/model_folder.h"
#include "common/base/hasher.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/url.h"
#include "kube/errors.h"
#include "operator/api/job_status.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"

namespace medley::cli {
namespace {

namespace fs = std::filesystem;

constexpr base::nanoseconds kAskAgain = base::milliseconds(300);
constexpr base::nanoseconds kSilence = base::seconds(60);

std::string RandomWord(size_t numbers) {
  std::string word;
  for (size_t i = 0; i < numbers; ++i) word += fmt::format("{:016x}", base::SystemSeed());
  return word;
}

// The newest pod of the job's coordinator; nullopt: all were deleted.
absl::StatusOr<std::optional<kube::Object>> FindCoordinator(const Cluster& cluster, const kube::Object& job) {
  const std::string selector = fmt::format("{}={},{}={}", ops::kJobNameLabel, job.key().name, ops::kRoleLabel,
                                           ops::ToString(ops::Role::kCoordinator));
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<kube::Object> pods,
                          ListAll(cluster, kube::resources::Pods(), {.ns = job.key().ns, .label_selector = selector}));
  std::optional<kube::Object> newest;
  for (const kube::Object& pod : pods) {
    const auto owner = pod.controller();
    if (!owner || owner->uid != job.uid()) continue;
    const auto made = [](const kube::Object& object) { return object.String("/metadata/creationTimestamp"); };
    if (!newest || made(*newest) < made(pod)) newest = pod;
  }
  return newest;
}

// Deletes the pod when it goes out of scope.
class Reader {
 public:
  Reader(const Cluster& cluster, base::Clock& clock, kube::Key key, std::string secret)
      : cluster_(cluster), clock_(clock), key_(std::move(key)), secret_(std::move(secret)) {}
  ~Reader() { (void)cluster_.client->Delete(kube::resources::Pods(), key_, {.grace_period_seconds = 0}); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const kube::Key& key() const { return key_; }
  // Ends when no byte has come for a minute.
  absl::Status Stream(const std::string& file, const std::stop_token& stop,
                      const std::function<bool(std::string_view)>& on_bytes) const {
    std::stop_source either;
    const std::stop_callback caller(stop, [&either] { either.request_stop(); });
    std::atomic<int> pieces = 0;
    std::atomic<bool> silent = false;
    const std::jthread watch([&](const std::stop_token& over) {
      int seen = -1;
      do {
        silent = seen == pieces;
        if (silent) either.request_stop();
        seen = pieces;
      } while (!silent && clock_.SleepFor(kSilence, over));
    });
    const absl::Status status = cluster_.client->StreamRaw(Path(file), either.get_token(), [&](std::string_view bytes) {
      ++pieces;
      return on_bytes(bytes);
    });
    if (silent) return base::DeadlineExceeded("no byte came for {} s", base::ToSeconds(kSilence));
    return status;
  }

 private:
  std::string Path(const std::string& file) const {
    std::string path =
        fmt::format("/api/v1/namespaces/{}/pods/{}:{}/proxy/{}", key_.ns, key_.name, kReaderPort, secret_);
    for (const fs::path& part : fs::path(file)) path += "/" + base::UrlEncode(part.string());
    return path;
  }

  const Cluster& cluster_;
  base::Clock& clock_;
  const kube::Key key_;
  const std::string secret_;
};

// Asks until the pod answers with its list.
absl::StatusOr<std::vector<ListedFile>> AwaitList(const Cluster& cluster, base::Clock& clock, const Reader& reader,
                                                  base::nanoseconds timeout, const std::stop_token& stop) {
  const base::SteadyTime deadline = clock.Steady() + timeout;
  std::string why = "the pod has not started";
  while (true) {
    const auto pod = cluster.client->Get(kube::resources::Pods(), reader.key());
    if (!pod.ok()) return ExplainApiError(pod.status(), cluster);
    const std::string phase = pod->String("/status/phase");
    if (phase == "Running") {
      std::string text;
      const absl::Status status = reader.Stream("", stop, [&](std::string_view bytes) {
        text += bytes;
        return text.size() <= kMostListBytes;
      });
      if (status.ok()) return ParseFileList(text);
      if (absl::IsPermissionDenied(status)) return ExplainApiError(status, cluster);
      if (absl::IsNotFound(status)) return base::NotFound("the job has exported no model");
      why = "it cannot be reached through the API server: " + base::Message(status);
    } else {
      const std::string problem = PodProblem(*pod);
      if (!problem.empty()) why = "it " + problem;
      if (phase == "Failed" || phase == "Succeeded") break;
    }
    if (stop.stop_requested()) return base::Cancelled("interrupted");
    if (clock.Steady() >= deadline) break;
    clock.SleepFor(kAskAgain, stop);
  }
  return base::DeadlineExceeded("the pod {} that reads the volume does not answer: {}", reader.key().name, why);
}

absl::Status FetchFile(const Reader& reader, const ListedFile& file, const fs::path& to, const std::stop_token& stop) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (error) return base::ErrnoStatus(error.value(), "creating " + to.parent_path().string());
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  base::Hasher hash;
  int64_t bytes = 0;
  MEDLEY_RETURN_IF_ERROR(reader.Stream(file.path, stop, [&](std::string_view piece) {
    hash.Add(piece);
    bytes += std::ssize(piece);
    out.write(piece.data(), std::ssize(piece));
    return out.good() && bytes <= file.bytes;
  }));
  out.close();
  if (!out) return base::Internal("writing {}: no room, or the disk failed", to.string());
  if (stop.stop_requested()) return base::Cancelled("interrupted");
  if (bytes != file.bytes || hash.Hex() != file.hash) {
    return base::DataLoss("{} is not as the volume has it ({} of {} bytes came); run the command again", file.path,
                          bytes, file.bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Downloaded> DownloadModel(const Cluster& cluster, base::Clock& clock, const DownloadOptions& options,
                                         std::stop_token stop, const std::function<void(const std::string&)>& say) {
  MEDLEY_ASSIGN_OR_RETURN(const kube::Object job, GetJob(cluster, options.job));
  const ops::JobStatus status = ops::JobStatus::FromJson(job.At("/status"));
  if (!status.conditions.IsTrue(ops::kCompleteCondition)) {
    return base::FailedPrecondition("job {} is {}: a job has a model when it is Complete", job.key().name,
                                    status.Phase());
  }
  MEDLEY_RETURN_IF_ERROR(CheckModelFolder(options.to));
  ReaderPodInput input{.job = job, .coordinator = {}, .image = options.image, .name = "", .secret = RandomWord(2)};
  MEDLEY_ASSIGN_OR_RETURN(input.coordinator, FindCoordinator(cluster, job));
  input.name = job.key().name.substr(0, 40) + "-download-" + RandomWord(1).substr(0, 8);
  MEDLEY_ASSIGN_OR_RETURN(const kube::Object pod, MakeReaderPod(input));
  const auto created = cluster.client->Create(kube::resources::Pods(), pod);
  if (!created.ok()) return ExplainApiError(created.status(), cluster);
  const Reader reader(cluster, clock, pod.key(), input.secret);
  say("waiting for pod " + input.name);
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<ListedFile> files,
                          AwaitList(cluster, clock, reader, options.start_timeout, stop));
  fs::path temporary = options.to;
  temporary += ".tmp";
  std::error_code error;
  fs::remove_all(temporary, error);
  Downloaded done;
  for (const ListedFile& file : files) {
    say(fmt::format("{} ({} bytes)", file.path, file.bytes));
    const absl::Status fetched = FetchFile(reader, file, temporary / file.path, stop);
    if (!fetched.ok()) {
      fs::remove_all(temporary, error);
      return base::Annotate(fetched, "fetching " + file.path);
    }
    ++done.files;
    done.bytes += file.bytes;
  }
  MEDLEY_RETURN_IF_ERROR(PlaceModel(temporary, options.to));
  return done;
}

}  // namespace medley::cli
