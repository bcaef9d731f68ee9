#include "operator/records/plan_record.h"

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/text.h"
#include "medley/plan/v1/plan.pb.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"

namespace medley::ops {
namespace {

using kube::Json;

Json SlotsJson(const std::vector<MemberSlot>& slots) {
  Json list = Json::array();
  for (const MemberSlot& slot : slots) {
    Json item = {{"member", slot.member},
                 {"role", ToString(slot.role)},
                 {"pool", slot.pool},
                 {"stage", slot.stage},
                 {"index", slot.index}};
    if (!slot.zone.empty()) item["zone"] = slot.zone;
    if (!slot.device.empty()) item["device"] = slot.device;
    list.push_back(std::move(item));
  }
  return list;
}

std::vector<MemberSlot> ReadSlots(const Json& list) {
  std::vector<MemberSlot> slots;
  for (const Json& item : list) {
    if (!item.is_object()) continue;
    slots.push_back({item.value("member", ""), item.value("role", "") == "server" ? Role::kServer : Role::kTrainer,
                     item.value("pool", ""), item.value("stage", 0), item.value("index", 0), item.value("zone", ""),
                     item.value("device", "")});
  }
  return slots;
}

Json AlternativesJson(const std::vector<PlanStatus::Alternative>& alternatives) {
  Json list = Json::array();
  for (const PlanStatus::Alternative& other : alternatives) {
    list.push_back({{"label", other.label},
                    {"throughput", other.throughput},
                    {"usdPerHour", other.usd_per_hour},
                    {"usdTotal", other.usd_total},
                    {"reason", other.reason}});
  }
  return list;
}

std::vector<PlanStatus::Alternative> ReadAlternatives(const Json& list) {
  std::vector<PlanStatus::Alternative> alternatives;
  for (const Json& item : list) {
    if (!item.is_object()) continue;
    alternatives.push_back({item.value("label", ""), item.value("throughput", 0.0), item.value("usdPerHour", 0.0),
                            item.value("usdTotal", 0.0), item.value("reason", "")});
  }
  return alternatives;
}

void ReadRecord(const Json& json, PlanRecord& record) {
  record.slots = ReadSlots(json.value("slots", Json::array()));
  const Json prices = json.value("usdPerUnitHour", Json::object());
  for (const auto& [pool, price] : prices.items()) {
    if (price.is_number()) record.usd_per_unit_hour[pool] = price.get<double>();
  }
  for (const Json& name : json.value("layerNames", Json::array())) {
    if (name.is_string()) record.layer_names.push_back(name.get<std::string>());
  }
  for (const Json& number : json.value("stageThroughput", Json::array())) {
    if (number.is_number()) record.stage_throughput.push_back(number.get<double>());
  }
  record.alternatives = ReadAlternatives(json.value("alternatives", Json::array()));
  record.uncorrected_throughput = json.value("uncorrectedThroughput", 0.0);
  record.throughput_spread = json.value("throughputSpread", 0.0);
  record.reason = ReasonNamed(json.value("reason", "")).value_or(Reason::kCapacityChanged);  // of another version
  record.accepted_at = json.value("acceptedAt", "");
  record.policy = json.value("policy", "");
  record.coordinator_uid = json.value("coordinatorUid", "");
  record.coordinator_restarts = json.value("coordinatorRestarts", 0);
  record.coordinator_pod = json.value("coordinatorPod", "");
  record.coordinator_term = json.value("coordinatorTerm", int64_t{0});
  record.successor_pod = json.value("successorPod", "");
  record.successor_term = json.value("successorTerm", int64_t{0});
}

Json RecordJson(const PlanRecord& record) {
  return {{"slots", SlotsJson(record.slots)},
          {"usdPerUnitHour", record.usd_per_unit_hour},
          {"layerNames", record.layer_names},
          {"stageThroughput", record.stage_throughput},
          {"uncorrectedThroughput", record.uncorrected_throughput},
          {"throughputSpread", record.throughput_spread},
          {"alternatives", AlternativesJson(record.alternatives)},
          {"reason", ToString(record.reason)},
          {"acceptedAt", record.accepted_at},
          {"policy", record.policy},
          {"coordinatorUid", record.coordinator_uid},
          {"coordinatorRestarts", record.coordinator_restarts},
          {"coordinatorPod", record.coordinator_pod},
          {"coordinatorTerm", record.coordinator_term},
          {"successorPod", record.successor_pod},
          {"successorTerm", record.successor_term}};
}

std::string PlanText(const PlanRecord& record) {
  plan::v1::ExecutionPlan proto;
  model::ToProto(record.plan, proto);
  return model::ToJson(proto, true);
}

// `prefix`: of the keys of the ConfigMap.
absl::StatusOr<PlanRecord> ReadPart(const kube::Object& config_map, const std::string& prefix) {
  const std::string where = "ConfigMap " + config_map.key().ToString() + ": " + prefix;
  plan::v1::ExecutionPlan proto;
  absl::Status parsed = model::ParseText(config_map.String("/data/" + prefix + "plan.json"), proto);
  if (!parsed.ok()) return base::Annotate(parsed, where + "plan.json");
  PlanRecord record;
  auto plan = model::FromProto(proto);
  if (!plan.ok()) return base::Annotate(plan.status(), where + "plan.json");
  record.plan = *std::move(plan);
  const Json json = Json::parse(config_map.String("/data/" + prefix + "record.json"), nullptr, false);
  if (!json.is_object()) return base::InvalidArgument("{}record.json is not a JSON object", where);
  try {
    ReadRecord(json, record);
  } catch (const Json::exception& e) {  // a field of another type
    return base::InvalidArgument("{}record.json: {}", where, e.what());
  }
  return record;
}

}  // namespace

double PlanRecord::UsdPerHour(const std::map<std::string, double>& prices) const {
  double sum = 0;
  for (const MemberSlot& slot : slots) {
    const auto now = prices.find(slot.pool);
    const auto then = usd_per_unit_hour.find(slot.pool);
    sum += now != prices.end() ? now->second : then != usd_per_unit_hour.end() ? then->second : 0;
  }
  return sum;
}

std::map<std::string, std::string> PlanRecord::Zones() const {
  std::map<std::string, std::string> zones;
  for (const MemberSlot& slot : slots) zones[slot.pool] = slot.zone;
  return zones;
}

int PlanRecord::Trainers() const {
  int trainers = 0;
  for (const MemberSlot& slot : slots) trainers += slot.role == Role::kTrainer ? 1 : 0;
  return trainers;
}

std::string PlanRecord::CoordinatorPodName(const std::string& job) const {
  return coordinator_pod.empty() ? CoordinatorName(job) : coordinator_pod;
}

void PlanRecord::KeepCoordinatorOf(const PlanRecord& other) {
  coordinator_uid = other.coordinator_uid;
  coordinator_restarts = other.coordinator_restarts;
  coordinator_pod = other.coordinator_pod;
  coordinator_term = other.coordinator_term;
  successor_pod = other.successor_pod;
  successor_term = other.successor_term;
}

std::vector<MemberSlot> PlanRecord::FallbackSlots() const {
  return fallback == nullptr ? std::vector<MemberSlot>() : fallback->slots;
}

kube::Object PlanConfigMap(const TrainingJob& job, const PlanRecord& record) {
  kube::Object map(kube::resources::ConfigMaps(), {job.key().ns, PlanConfigMapName(job.name())});
  map.SetLabel(kJobNameLabel, job.name());
  map.SetLabel("app.kubernetes.io/managed-by", "medley-operator");
  map.SetController(job.object).IgnoreError();  // cannot fail: a new object has no other controller
  kube::Json& data = map.mutable_json()["data"];
  data = {{"plan.json", PlanText(record)}, {"record.json", RecordJson(record).dump(2)}};
  if (record.fallback != nullptr) {
    data["fallback-plan.json"] = PlanText(*record.fallback);
    data["fallback-record.json"] = RecordJson(*record.fallback).dump(2);
  }
  return map;
}

absl::StatusOr<PlanRecord> ReadPlanRecord(const kube::Object& config_map) {
  MEDLEY_ASSIGN_OR_RETURN(PlanRecord record, ReadPart(config_map, ""));
  if (config_map.String("/data/fallback-plan.json").empty()) return record;
  auto fallback = ReadPart(config_map, "fallback-");
  // An unreadable fallback does not matter while the plan itself can be read.
  if (fallback.ok()) record.fallback = std::make_shared<const PlanRecord>(*std::move(fallback));
  return record;
}

bool SameShape(const model::ExecutionPlan& a, const model::ExecutionPlan& b) {
  return a.stages == b.stages && a.devices == b.devices && a.placements == b.placements && a.order == b.order &&
         a.servers == b.servers && a.schedule == b.schedule;
}

}  // namespace medley::ops
