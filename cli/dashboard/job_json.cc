#include "cli/dashboard/job_json.h"

#include "cli/cluster/story_view.h"

namespace medley::cli {
namespace {

using kube::Json;

constexpr size_t kMostEvents = 100;

Json EventJson(const kube::Object& event) {
  const std::string last = event.String("/lastTimestamp");
  const Json& count = event.At("/count");
  return {{"at", last.empty() ? event.String("/eventTime") : last},
          {"count", count.is_number_integer() ? count : Json(1)},
          {"type", event.String("/type")},
          {"reason", event.String("/reason")},
          {"object", event.String("/involvedObject/name")},
          {"message", event.String("/message")}};
}

}  // namespace

std::string JobJson(const Story& story, base::WallTime now) {
  Json json = {{"namespace", story.job.key().ns}, {"name", story.job.key().name},
               {"uid", story.job.uid()},          {"status", story.job.At("/status")},
               {"layerNames", Json::array()},     {"usdPerUnitHour", Json::object()},
               {"events", Json::array()},         {"explain", StoryLines(story, now)}};
  if (story.record) {
    json["layerNames"] = story.record->layer_names;
    json["usdPerUnitHour"] = story.record->usd_per_unit_hour;
  }
  for (auto event = story.events.rbegin(); event != story.events.rend(); ++event) {
    if (json["events"].size() == kMostEvents) break;
    json["events"].push_back(EventJson(*event));
  }
  // Status fields come from a server that may hold what another program wrote.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace medley::cli
