#include "localcluster/apiserver/selectors.h"

#include <fmt/format.h>

#include <set>

#include "common/base/status.h"
#include "localcluster/apiserver/api_error.h"

namespace medley::localcluster::apiserver {
namespace {

bool Selectable(const ResourceInfo& info, const std::string& field) {
  if (field == "metadata.name") return true;
  if (field == "metadata.namespace") return info.resource.namespaced;
  if (!info.builtin) return false;
  const std::string& kind = info.resource.kind;
  const std::set<std::string> pod = {"status.phase",       "spec.nodeName",           "spec.restartPolicy",
                                     "spec.schedulerName", "spec.serviceAccountName", "status.podIP"};
  if (kind == "Pod") return pod.contains(field);
  if (kind == "Event") {
    return field.starts_with("involvedObject.") || field == "reason" || field == "type" ||
           field == "reportingComponent" || field == "source";
  }
  if (kind == "Namespace") return field == "status.phase";
  if (kind == "Node") return field == "spec.unschedulable";
  return kind == "Secret" && field == "type";
}

std::string Pointer(const std::string& field) {
  std::string out = "/";
  for (const char c : field) out += c == '.' ? '/' : c;
  return out;
}

}  // namespace

absl::StatusOr<Selector> Selector::Parse(const ResourceInfo& info, const std::string& ns, const std::string& labels,
                                         const std::string& fields) {
  Selector selector;
  selector.ns_ = ns;
  if (!labels.empty()) {
    auto parsed = kube::LabelSelector::Parse(labels);
    if (!parsed.ok()) return BadRequest(base::Message(parsed.status()));
    selector.labels_ = std::move(*parsed);
  }
  std::string_view rest = fields;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view term = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (term.empty()) continue;
    const size_t equals = term.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return BadRequest(fmt::format("invalid field selector: \"{}\"", term));
    }
    const bool negative = term[equals - 1] == '!';
    const std::string name(term.substr(0, equals - (negative ? 1 : 0)));
    std::string_view value = term.substr(equals + 1);
    if (value.starts_with('=')) value.remove_prefix(1);
    if (!Selectable(info, name)) {
      return BadRequest(fmt::format("field label not supported: {}", name));
    }
    selector.fields_.push_back({Pointer(name), std::string(value), !negative});
  }
  return selector;
}

bool Selector::Matches(const kube::Object& object) const {
  if (!ns_.empty() && object.String("/metadata/namespace") != ns_) return false;
  if (labels_.has_value() && !labels_->Matches(object)) return false;
  for (const Term& term : fields_) {
    const kube::Json& found = object.At(term.pointer);
    const std::string text = found.is_string() ? found.get<std::string>()
                             : found.is_null() ? (term.value == "false" ? "false" : "")
                                               : found.dump();
    if ((text == term.value) != term.equal) return false;
  }
  return true;
}

}  // namespace medley::localcluster::apiserver
