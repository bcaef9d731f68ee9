#include "cli/cluster/log_follower.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "cli/cluster/kept_log.h"
#include "common/base/backoff.h"
#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/job_status.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/records/plan_record.h"

namespace medley::cli {
namespace {

constexpr int kTickSeconds = 2;                   // interval between lists of the pods
constexpr int64_t kMaxLogs = int64_t{256} << 20;  // bytes of all logs together, when not followed
constexpr size_t kMaxLine = size_t{1} << 20;      // bytes; longer lines are truncated

std::string Selector(const LogChoice& choice) {
  std::string selector = std::string(ops::kJobNameLabel) + "=" + choice.job;
  if (!choice.role.empty()) selector += std::string(",") + ops::kRoleLabel + "=" + choice.role;
  return selector;
}

std::string LogPath(const kube::Key& pod, const LogChoice& choice) {
  std::string path =
      kube::resources::Pods().Path(pod.ns, pod.name, "log") + "?timestamps=true&container=" + ops::kWorkerContainer;
  if (choice.previous) path += "&previous=true";
  return path;
}

std::string Limits(const LogChoice& choice) {
  std::string query;
  if (choice.tail) query += "&tailLines=" + std::to_string(*choice.tail);
  if (choice.since_seconds) query += "&sinceSeconds=" + std::to_string(*choice.since_seconds);
  return query;
}

std::optional<kube::Object> PlanOf(const Cluster& cluster, const LogChoice& choice) {
  if (!choice.stage) return std::nullopt;
  auto map = cluster.client->Get(kube::resources::ConfigMaps(), {cluster.ns, ops::PlanConfigMapName(choice.job)});
  return map.ok() ? std::optional<kube::Object>(*std::move(map)) : std::nullopt;
}

absl::StatusOr<std::vector<kube::Object>> Pods(const Cluster& cluster, const LogChoice& choice) {
  MEDLEY_ASSIGN_OR_RETURN(
      const std::vector<kube::Object> pods,
      ListAll(cluster, kube::resources::Pods(), {.ns = cluster.ns, .label_selector = Selector(choice)}));
  const std::optional<kube::Object> plan = PlanOf(cluster, choice);
  return ChoosePods(pods, choice, plan ? &*plan : nullptr);
}

std::string NoLog(const kube::Key& pod, const absl::Status& error) {
  return "cannot read the log of pod " + pod.name + ": " + base::Message(error);
}

// The latest start of the worker container: its number, and whether it has a log yet.
struct Start {
  int64_t number = 0;
  bool begun = false;
  bool running = false;
};

Start StartOf(const kube::Object& pod) {
  Start start;
  for (const kube::Json& status : pod.At("/status/containerStatuses")) {
    const kube::Object container(status);
    if (container.String("/name") != ops::kWorkerContainer) continue;
    const kube::Json& count = container.At("/restartCount");
    start.number = count.is_number_integer() ? count.get<int64_t>() : 0;
    start.running = !container.At("/state/running").is_null();
    start.begun = start.running || !container.At("/state/terminated").is_null();
  }
  return start;
}

class Follower {
 public:
  Follower(const Cluster& cluster, const LogChoice& choice, base::Clock& clock, const LogSink& sink,
           const LogNote& note)
      : cluster_(cluster), choice_(choice), clock_(clock), sink_(sink), note_(note) {}

  absl::Status Run(std::stop_token stop) {
    bool first = true;
    while (!stop.stop_requested()) {
      const auto pods = Pods(cluster_, choice_);
      if (!pods.ok() && first) return pods.status();
      first = false;
      if (!pods.ok()) {
        Note(base::Message(pods.status()));
        clock_.SleepFor(base::seconds(kTickSeconds), stop);
        continue;
      }
      for (const kube::Object& pod : *pods) Attend(pod, stop);
      if (JobIsOver() && AllEnded()) break;
      Watch(stop);
    }
    streams_.clear();  // stops and joins
    return absl::OkStatus();
  }

 private:
  struct Stream {
    std::atomic<bool> ended{false};
    bool refused = false;   // the log cannot be read, do not retry; only `thread` uses it until `ended`
    base::WallTime last{};  // time of the newest line; only `thread` uses it until `ended`
    std::jthread thread;
  };

  // Starts to follow new pods at once, until the next list, which finds any pods that the watch missed.
  void Watch(std::stop_token stop) {
    const kube::WatchOptions options{.ns = cluster_.ns,
                                     .label_selector = Selector(choice_),
                                     .timeout_seconds = kTickSeconds,
                                     .allow_bookmarks = false};
    const base::SteadyTime until = clock_.Steady() + base::seconds(kTickSeconds);
    const absl::Status ended =
        cluster_.client->Watch(kube::resources::Pods(), options, stop, [&](kube::WatchEvent event) {
          const bool of_pod =
              event.type == kube::WatchEvent::Type::kAdded || event.type == kube::WatchEvent::Type::kModified;
          // A choice by stage needs the plan, which is read together with the next list.
          if (of_pod && !choice_.stage) Attend(event.object, stop);
          return clock_.Steady() < until;
        });
    if (!ended.ok()) clock_.SleepUntil(until, stop);
  }

  void Attend(const kube::Object& pod, const std::stop_token& stop) {
    const Start start = StartOf(pod);
    if (!start.begun || stop.stop_requested()) return;
    const std::string id = pod.uid() + "/" + std::to_string(start.number);
    const auto found = streams_.find(id);
    base::WallTime last{};
    if (found != streams_.end()) {
      if (!found->second->ended || found->second->refused || !start.running) return;
      last = found->second->last;  // the connection ended but the container runs on
    } else if (Living() >= choice_.max_pods) {
      if (!std::exchange(bound_noted_, true)) {
        Note(fmt::format("only {} pods are followed at the same time; raise --max-pods, or use --role or --stage",
                         choice_.max_pods));
      }
      return;
    }
    auto stream = std::make_unique<Stream>();
    stream->last = last;
    stream->thread = std::jthread([this, key = pod.key(), self = stream.get()](std::stop_token own) {
      Follow(key, *self, std::move(own));
      self->ended = true;
    });
    streams_[id] = std::move(stream);
  }

  void Follow(const kube::Key& pod, Stream& stream, std::stop_token stop) {
    base::Backoff backoff({.first = base::milliseconds(200), .max = base::seconds(5)}, base::SystemSeed());
    while (!stop.stop_requested()) {
      const bool again = stream.last != base::WallTime();
      // The API accepts whole seconds only, so some lines come again; Emit drops them.
      const std::string path = LogPath(pod, choice_) + "&follow=true" +
                               (again ? "&sinceTime=" + base::FormatTime(stream.last) : Limits(choice_));
      std::string rest;
      const absl::Status ended = cluster_.client->StreamRaw(path, stop, [&](std::string_view bytes) {
        rest.append(bytes);
        Emit(pod.name, again, rest, stream);
        return true;
      });
      if (!rest.empty() && ended.ok()) Emit(pod.name, again, rest += '\n', stream);
      if (ended.ok() || kube::IsNotFound(ended)) return;
      const int code = kube::HttpCode(ended);
      if (code >= 400 && code < 500 && code != 429) {
        stream.refused = true;
        return Note(NoLog(pod, ExplainApiError(ended, cluster_)));
      }
      clock_.SleepFor(backoff.Next(), stop);
    }
  }

  // Passes complete lines of `text` to the sink and removes them from it.
  void Emit(const std::string& pod, bool again, std::string& text, Stream& stream) {
    const base::WallTime seen = again ? stream.last : base::WallTime();
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      LogLine line = ParseLogLine(pod, std::string_view(text).substr(begin, std::min(end - begin, kMaxLine)));
      if (again && line.time <= seen) continue;
      stream.last = std::max(stream.last, line.time);
      base::MutexLock lock(mutex_);
      sink_(line);
    }
    text.erase(0, begin);
    if (text.size() > kMaxLine) text.resize(kMaxLine);
  }

  // Passes a sentence on, unless it is the same as the last one.
  void Note(const std::string& sentence) {
    base::MutexLock lock(mutex_);
    if (sentence == std::exchange(last_note_, sentence)) return;
    note_(sentence);
  }

  int Living() const {
    return static_cast<int>(
        std::count_if(streams_.begin(), streams_.end(), [](const auto& stream) { return !stream.second->ended; }));
  }
  bool AllEnded() const { return Living() == 0; }

  bool JobIsOver() const {
    const auto job = cluster_.client->Get(ops::TrainingJobs(), {cluster_.ns, choice_.job});
    if (!job.ok()) return kube::IsNotFound(job.status());
    return ops::JobStatus::FromJson(job->At("/status")).finished();
  }

  const Cluster& cluster_;
  const LogChoice& choice_;
  base::Clock& clock_;
  const LogSink& sink_;
  const LogNote& note_;
  base::Mutex mutex_;  // held while calling sink_ and note_
  std::string last_note_ ABSL_GUARDED_BY(mutex_);
  bool bound_noted_ = false;
  std::map<std::string, std::unique_ptr<Stream>> streams_;  // by the pod's uid and the container's start
};

}  // namespace

std::vector<kube::Object> ChoosePods(const std::vector<kube::Object>& pods, const LogChoice& choice,
                                     const kube::Object* plan) {
  std::map<std::string, int> stage_of;
  if (choice.stage && plan != nullptr) {
    const auto record = ops::ReadPlanRecord(*plan);
    for (const ops::MemberSlot& slot : record.ok() ? record->slots : std::vector<ops::MemberSlot>()) {
      if (slot.role == ops::Role::kTrainer) stage_of[slot.member] = slot.stage;
    }
  }
  std::vector<kube::Object> chosen;
  for (const kube::Object& pod : pods) {
    if (!choice.role.empty() && pod.label(ops::kRoleLabel) != choice.role) continue;
    if (choice.stage) {
      const auto now = stage_of.find(pod.key().name);
      const std::string stage = now != stage_of.end() ? std::to_string(now->second) : pod.label(ops::kStageLabel);
      if (stage != std::to_string(*choice.stage)) continue;
    }
    chosen.push_back(pod);
  }
  return chosen;
}

absl::Status ReadLogs(const Cluster& cluster, const LogChoice& choice, const LogSink& sink, const LogNote& note) {
  MEDLEY_ASSIGN_OR_RETURN(const kube::Object job, GetJob(cluster, choice.job));
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<kube::Object> pods, Pods(cluster, choice));
  const bool finished = ops::JobStatus::FromJson(job.At("/status")).finished();
  if (pods.empty()) {
    return base::NotFound(
        "job {} has no {}pods now; after a job has finished, its spec.runPolicy.cleanPodPolicy decides which pods are "
        "deleted{}",
        cluster.ns + "/" + choice.job, choice.role.empty() && !choice.stage ? "" : "matching ",
        finished ? "; " + KeptLog(job) : "");
  }
  std::vector<std::vector<LogLine>> logs;
  const int64_t most = kMaxLogs / static_cast<int64_t>(pods.size());
  for (const kube::Object& pod : pods) {
    const auto text =
        cluster.client->GetRaw(LogPath(pod.key(), choice) + Limits(choice) + "&limitBytes=" + std::to_string(most));
    if (!text.ok()) {
      if (!kube::IsNotFound(text.status())) note(NoLog(pod.key(), ExplainApiError(text.status(), cluster)));
      continue;
    }
    if (static_cast<int64_t>(text->size()) >= most) {
      note(fmt::format("the log of pod {} is truncated after {} MiB; use --tail or --since to select a part",
                       pod.key().name, most >> 20));
    }
    std::vector<LogLine>& lines = logs.emplace_back();
    for (size_t begin = 0; begin < text->size();) {
      const size_t end = std::min(text->find('\n', begin), text->size());
      lines.push_back(ParseLogLine(pod.key().name, std::string_view(*text).substr(begin, end - begin)));
      begin = end + 1;
    }
  }
  for (const LogLine& line : MergeByTime(std::move(logs))) sink(line);
  if (finished) note(KeptLog(job));
  return absl::OkStatus();
}

absl::Status FollowLogs(const Cluster& cluster, const LogChoice& choice, base::Clock& clock, std::stop_token stop,
                        const LogSink& sink, const LogNote& note) {
  MEDLEY_RETURN_IF_ERROR(GetJob(cluster, choice.job).status());
  Follower follower(cluster, choice, clock, sink, note);
  return follower.Run(std::move(stop));
}

}  // namespace medley::cli
