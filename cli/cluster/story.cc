#include "cli/cluster/story.h"

#include <algorithm>

#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"

namespace medley::cli {
namespace {

std::string LastSeen(const kube::Object& event) {
  for (const char* field :
       {"/lastTimestamp", "/series/lastObservedTime", "/eventTime", "/metadata/creationTimestamp"}) {
    if (std::string time = event.String(field); !time.empty()) return time;
  }
  return "";
}

// Returns a sentence about objects that could not be read.
std::string Unread(const std::string& what, const absl::Status& why) {
  if (why.code() != absl::StatusCode::kPermissionDenied) return base::Message(why);
  return what + ": this user is not allowed to read them (needs ClusterRole " +
         (what == "resourcepools" ? "medley-pool-viewer)" : "view)");
}

// Lists the objects; after an error adds a sentence to story.unread.
std::vector<kube::Object> ListOrNote(const Cluster& cluster, const kube::Resource& resource,
                                     const kube::ListOptions& options, Story& story) {
  auto list = ListAll(cluster, resource, options);
  if (list.ok()) return *std::move(list);
  story.unread.push_back(Unread(resource.plural, list.status()));
  return {};
}

}  // namespace

absl::StatusOr<Story> ReadStory(const Cluster& cluster, const std::string& job) {
  Story story;
  MEDLEY_ASSIGN_OR_RETURN(story.job, GetJob(cluster, job));
  const kube::Key key = story.job.key();
  story.pools = ListOrNote(cluster, ops::ResourcePools(), {}, story);
  story.pods = ListOrNote(cluster, kube::resources::Pods(),
                          {.ns = key.ns, .label_selector = std::string(ops::kJobNameLabel) + "=" + key.name}, story);
  std::erase_if(story.pods, [&](const kube::Object& pod) {
    const auto owner = pod.controller();
    return !owner || owner->uid != story.job.uid();
  });
  const auto about = [&](const kube::Object& event) {
    const std::string uid = event.String("/involvedObject/uid");
    return uid == story.job.uid() ||
           std::any_of(story.pods.begin(), story.pods.end(), [&](const kube::Object& pod) { return pod.uid() == uid; });
  };
  story.events = ListOrNote(cluster, kube::resources::Events(), {.ns = key.ns}, story);
  std::erase_if(story.events, [&](const kube::Object& event) { return !about(event); });
  std::stable_sort(story.events.begin(), story.events.end(),
                   [](const kube::Object& a, const kube::Object& b) { return LastSeen(a) < LastSeen(b); });
  const auto map = cluster.client->Get(kube::resources::ConfigMaps(), {key.ns, ops::PlanConfigMapName(key.name)});
  if (map.ok()) {
    const auto owner = map->controller();
    auto record = ops::ReadPlanRecord(*map);
    if (record.ok() && owner && owner->uid == story.job.uid()) story.record = *std::move(record);
    if (!record.ok()) story.unread.push_back(base::Message(record.status()));
  } else if (!kube::IsNotFound(map.status())) {
    story.unread.push_back(Unread("configmaps", ExplainApiError(map.status(), cluster)));
  }
  return story;
}

}  // namespace medley::cli
