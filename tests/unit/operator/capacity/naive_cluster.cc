#include "tests/unit/operator/capacity/naive_cluster.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/quantity.h"

namespace medley::ops {
namespace {

using kube::Json;
using Numbers = std::map<std::string, double>;

double Number(const Json& text) { return base::ParseQuantity(text.get<std::string>()).value(); }

Numbers Requests(const Json& container) {
  Numbers numbers;
  const Json resources = container.value("resources", Json::object());
  for (const char* list : {"limits", "requests"}) {  // requests overwrite limits
    const Json amounts = resources.value(list, Json::object());
    for (const auto& [name, text] : amounts.items()) numbers[name] = Number(text);
  }
  return numbers;
}

// The most that the pod uses at any time.
Numbers PeakOf(const Json& pod) {
  Numbers peak;
  std::vector<Json> running;
  const auto moment = [&](const std::vector<Json>& alive) {
    Numbers sum;
    for (const Json& container : alive) {
      for (const auto& [name, value] : Requests(container)) sum[name] += value;
    }
    for (const auto& [name, value] : sum) peak[name] = std::max(peak[name], value);
  };
  const Json spec = pod.at("spec");
  for (const Json& container : spec.value("initContainers", Json::array())) {
    std::vector<Json> alive = running;
    alive.push_back(container);
    moment(alive);
    if (container.value("restartPolicy", "") == "Always") running.push_back(container);
  }
  for (const Json& container : spec.at("containers")) running.push_back(container);
  moment(running);
  const Json overhead = spec.value("overhead", Json::object());
  for (const auto& [name, text] : overhead.items()) peak[name] += Number(text);
  return peak;
}

bool Ended(const Json& pod) {
  const std::string phase = pod.at("status").value("phase", "");
  return phase == "Failed" || phase == "Succeeded";
}

std::string Label(const Json& object, const std::string& name) {
  return object.at("metadata").value("labels", Json::object()).value(name, "");
}

bool Tolerated(const Json& taint, const Json& tolerations) {
  for (const Json& t : tolerations) {
    const bool effect = !t.contains("effect") || t["effect"] == taint["effect"];
    const bool any_key = !t.contains("key") && t.value("operator", "") == "Exists";
    const bool same_key = t.contains("key") && t["key"] == taint["key"];
    const bool value = t.value("operator", "Equal") == "Exists" || t.value("value", "") == taint.value("value", "");
    if (effect && (any_key || (same_key && value))) return true;
  }
  return false;
}

bool TermHolds(const Json& term, const Json& node) {
  for (const Json& e : term.at("matchExpressions")) {
    const std::string key = e["key"];
    const Json labels = node.at("metadata").at("labels");
    const bool has = labels.contains(key);
    bool in = false;
    for (const Json& v : e.value("values", Json::array())) in |= has && labels[key] == v;
    const std::string op = e["operator"];
    bool ok = false;
    if (op == "In") ok = in;
    if (op == "NotIn") ok = !in;
    if (op == "Exists") ok = has;
    if (op == "DoesNotExist") ok = !has;
    const auto number = [](const Json& text) { return std::stoi(text.get<std::string>()); };
    if (op == "Gt") ok = has && number(labels[key]) > number(e["values"][0]);
    if (!ok) return false;
  }
  return true;
}

bool Admits(const Json& node, const Json& unit) {
  if (node.at("spec").value("unschedulable", false)) return false;
  for (const Json& c : node.at("status").at("conditions")) {
    if (c["type"] == "Ready" && c["status"] != "True") return false;
  }
  const Json spec = unit.at("spec");
  for (const Json& taint : node.at("spec").value("taints", Json::array())) {
    if (taint["key"] == "karpenter.sh/disrupted") return false;  // the node is being drained
    if (taint["effect"] == "PreferNoSchedule") continue;
    if (!Tolerated(taint, spec.value("tolerations", Json::array()))) return false;
  }
  const Json selector = spec.value("nodeSelector", Json::object());
  for (const auto& [key, value] : selector.items()) {
    if (Label(node, key) != value) return false;
  }
  const Json::json_pointer terms(
      "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  if (!spec.contains(terms)) return true;
  return std::any_of(spec.at(terms).begin(), spec.at(terms).end(),
                     [&](const Json& term) { return TermHolds(term, node); });
}

class Room {
 public:
  Room(const Json& node, const std::map<std::string, Json>& pods, const std::set<std::string>& away) {
    for (const auto& [name, text] : node.at("status").at("allocatable").items()) {
      left_[name] = Number(text);
    }
    for (const auto& [name, pod] : pods) {
      if (Ended(pod) || pod.at("spec").value("nodeName", "") != node.at("metadata").at("name")) continue;
      if (away.contains(name)) continue;
      Take(PeakOf(pod));
    }
  }
  bool TakeIfFits(const Numbers& pod) {
    for (const auto& [name, value] : pod) {
      if (value > 0 && (left_.count(name) == 0 || left_[name] < value - 1e-6)) return false;
    }
    if (left_["pods"] < 1) return false;
    Take(pod);
    return true;
  }

 private:
  void Take(const Numbers& pod) {
    for (const auto& [name, value] : pod) left_[name] -= value;
    left_["pods"] -= 1;
  }
  Numbers left_;
};

}  // namespace

int NaiveCluster::Place(const Json& unit, int limit, const std::string& pool, const std::string& job) const {
  int held = 0;
  std::set<std::string> movable;
  std::map<std::string, Numbers> used;  // by quota
  for (const auto& [name, quota] : quotas) {
    for (const auto& [key, text] : quota["status"]["used"].items()) used[name][key] = Number(text);
  }
  const Numbers peak = PeakOf(unit);
  const auto charge = [&](const Numbers& pod, double sign) {
    for (auto& [name, numbers] : used) {
      for (auto& [key, value] : numbers) {
        if (key == "pods") value += sign;
        const std::string resource = key.substr(key.find('.') + 1);
        if (key != "pods" && pod.count(resource) > 0) value += sign * pod.at(resource);
      }
    }
  };
  for (const auto& [name, pod] : pods) {
    const std::string role = Label(pod, "medley.dev/role");
    const bool mine = !job.empty() && Label(pod, "medley.dev/job-name") == job;
    const bool is_unit = role == "trainer" || role == "profiler";
    if (Ended(pod) || !is_unit || Label(pod, "medley.dev/pool") != pool) continue;
    const auto where = nodes.find(pod.at("spec").value("nodeName", ""));
    bool leaves = false;
    if (where != nodes.end()) {
      leaves = where->second.at("spec").value("unschedulable", false);
      for (const Json& taint : where->second.at("spec").value("taints", Json::array()))
        leaves |= taint["key"] == "karpenter.sh/disrupted";
    }
    if (mine && !leaves && role == "trainer") {
      movable.insert(name);
      charge(PeakOf(pod), -1);
    } else {
      ++held;
    }
  }
  for (auto& [name, numbers] : used) {  // the quota may have been counted before some of the job's pods existed
    for (auto& [key, value] : numbers) value = std::max(0.0, value);
  }
  std::vector<Room> rooms;
  for (const auto& [name, node] : nodes) {
    if (Admits(node, unit)) rooms.emplace_back(node, pods, movable);
  }
  const auto place = [&] {
    return std::any_of(rooms.begin(), rooms.end(), [&](Room& room) { return room.TakeIfFits(peak); });
  };
  int placed = 0;
  while (held + placed < limit) {
    bool admitted = true;
    if (!job.empty()) {
      charge(peak, 1);
      for (const auto& [name, quota] : quotas) {
        for (const auto& [key, text] : quota["status"]["hard"].items())
          admitted = admitted && used[name][key] <= Number(text) + 1e-6;
      }
    }
    if (!admitted || !place()) break;
    ++placed;
  }
  return placed;
}

}  // namespace medley::ops
