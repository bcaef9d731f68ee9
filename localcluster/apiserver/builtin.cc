#include "localcluster/apiserver/builtin.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <set>

#include "common/base/quantity.h"

namespace medley::localcluster::apiserver {
namespace {

void Default(kube::Json* object, const char* name, kube::Json value) {
  kube::Json& slot = (*object)[name];
  if (slot.is_null()) slot = std::move(value);
}

void DefaultContainer(kube::Json* container) {
  if (!container->is_object()) return;
  const std::string image = container->value("image", "");
  const size_t colon = image.rfind(':');
  const bool latest =
      colon == std::string::npos || image.find('/', colon) != std::string::npos || image.substr(colon) == ":latest";
  Default(container, "imagePullPolicy", latest ? "Always" : "IfNotPresent");
  Default(container, "terminationMessagePath", "/dev/termination-log");
  Default(container, "terminationMessagePolicy", "File");
  Default(container, "resources", kube::Json::object());
  // If only limits are given, they are also the requests.
  kube::Json& resources = (*container)["resources"];
  if (!resources.is_object() || !resources.contains("limits") || !resources["limits"].is_object()) {
    return;
  }
  for (const auto& [name, value] : resources["limits"].items()) {
    Default(&resources, "requests", kube::Json::object());
    if (resources["requests"].is_object()) Default(&resources["requests"], name.c_str(), value);
  }
}

std::string QosClass(const kube::Json& spec) {
  bool any = false;
  bool guaranteed = true;
  for (const kube::Json& container : spec.value("containers", kube::Json::array())) {
    const kube::Json resources =
        container.is_object() ? container.value("resources", kube::Json::object()) : kube::Json();
    const kube::Json limits = resources.is_object() ? resources.value("limits", kube::Json::object()) : kube::Json();
    const kube::Json requests =
        resources.is_object() ? resources.value("requests", kube::Json::object()) : kube::Json();
    for (const char* name : {"cpu", "memory"}) {
      const bool limited = limits.is_object() && limits.contains(name);
      const bool requested = requests.is_object() && requests.contains(name);
      any = any || limited || requested;
      guaranteed = guaranteed && limited && requested && limits[name] == requests[name];
    }
  }
  return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

void DefaultPod(kube::Json* pod) {
  kube::Json& spec = (*pod)["spec"];
  if (!spec.is_object()) return;
  Default(&spec, "restartPolicy", "Always");
  Default(&spec, "terminationGracePeriodSeconds", 30);
  Default(&spec, "dnsPolicy", "ClusterFirst");
  Default(&spec, "schedulerName", "default-scheduler");
  Default(&spec, "securityContext", kube::Json::object());
  Default(&spec, "enableServiceLinks", true);
  Default(&spec, "serviceAccountName", "default");
  for (const char* list : {"containers", "initContainers"}) {
    if (!spec.contains(list) || !spec[list].is_array()) continue;
    for (kube::Json& container : spec[list]) DefaultContainer(&container);
  }
  (*pod)["status"] = {{"phase", "Pending"}, {"qosClass", QosClass(spec)}};
}

void DefaultService(kube::Json* service, uint64_t serial) {
  kube::Json& spec = (*service)["spec"];
  if (!spec.is_object()) spec = kube::Json::object();
  Default(&spec, "type", "ClusterIP");
  Default(&spec, "sessionAffinity", "None");
  Default(&spec, "internalTrafficPolicy", "Cluster");
  Default(&spec, "ipFamilies", kube::Json::array({"IPv4"}));
  Default(&spec, "ipFamilyPolicy", "SingleStack");
  Default(&spec, "clusterIP", fmt::format("10.96.{}.{}", (serial / 250) % 250, 2 + serial % 250));
  Default(&spec, "clusterIPs", kube::Json::array({spec["clusterIP"]}));
  if (spec.contains("ports") && spec["ports"].is_array()) {
    for (kube::Json& port : spec["ports"]) {
      if (!port.is_object()) continue;
      Default(&port, "protocol", "TCP");
      if (port.contains("port")) Default(&port, "targetPort", port["port"]);
    }
  }
  (*service)["status"] = {{"loadBalancer", kube::Json::object()}};
}

void DefaultSecret(kube::Json* secret) {
  Default(secret, "type", "Opaque");
  const auto given = secret->find("stringData");
  if (given == secret->end() || !given->is_object()) return;
  const kube::Json strings = *given;
  secret->erase("stringData");
  kube::Json& data = (*secret)["data"];
  if (!data.is_object()) data = kube::Json::object();
  for (const auto& [key, value] : strings.items()) {
    if (value.is_string()) data[key] = Base64(value.get<std::string>());
  }
}

void ValidateQuantities(const kube::Json& object, const char* pointer, const std::string& path,
                        kube::FieldErrors* errors) {
  const kube::Json::json_pointer place(pointer);
  if (!object.contains(place) || !object[place].is_object()) return;
  for (const auto& [name, value] : object[place].items()) {
    if (value.is_string() && !base::ParseQuantity(value.get<std::string>()).ok()) {
      errors->push_back(kube::InvalidValue(path + "." + name, value,
                                           "quantities must match the regular expression "
                                           "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"));
    }
  }
}

void ValidatePod(const kube::Json* old, const kube::Json& pod, kube::FieldErrors* errors) {
  const kube::Json spec = pod.value("spec", kube::Json::object());
  if (!spec.is_object()) return;
  const kube::Json containers = spec.value("containers", kube::Json::array());
  if (!containers.is_array() || containers.empty()) {
    errors->push_back(kube::RequiredValue("spec.containers"));
    return;
  }
  std::set<std::string> names;
  for (size_t i = 0; i < containers.size(); ++i) {
    const kube::Json& container = containers[i];
    if (!container.is_object()) continue;
    const std::string path = fmt::format("spec.containers[{}]", i);
    const std::string name = container.value("name", "");
    if (!name.empty() && !IsDnsLabel(name)) {
      errors->push_back(kube::InvalidValue(path + ".name", name, "a lowercase RFC 1123 label is needed"));
    }
    if (!names.insert(name).second) {
      errors->push_back({"FieldValueDuplicate", path + ".name", fmt::format("Duplicate value: \"{}\"", name)});
    }
    if (container.value("image", "").empty()) errors->push_back(kube::RequiredValue(path + ".image"));
    ValidateQuantities(container, "/resources/limits", path + ".resources.limits", errors);
    ValidateQuantities(container, "/resources/requests", path + ".resources.requests", errors);
  }
  const std::string policy = spec.value("restartPolicy", "Always");
  if (policy != "Always" && policy != "OnFailure" && policy != "Never") {
    errors->push_back({"FieldValueNotSupported", "spec.restartPolicy",
                       fmt::format("Unsupported value: \"{}\": supported values: \"Always\", "
                                   "\"OnFailure\", \"Never\"",
                                   policy)});
  }
  if (old == nullptr) return;
  kube::Json before = old->value("spec", kube::Json::object());
  kube::Json after = spec;
  for (kube::Json* one : {&before, &after}) {
    for (const char* field :
         {"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"}) {
      one->erase(field);
    }
    for (const char* list : {"containers", "initContainers"}) {
      if (!one->contains(list)) continue;
      for (kube::Json& container : (*one)[list]) {
        if (container.is_object()) container.erase("image");
      }
    }
  }
  if (before != after) {
    errors->push_back(
        kube::Forbidden("spec",
                        "pod updates may not change fields other than `spec.containers[*].image`,"
                        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
                        "additions to existing tolerations),`spec.terminationGracePeriodSeconds`"));
  }
}

// A key must be a valid file name and occur in only one of the two maps.
void ValidateConfigMap(const kube::Json& map, kube::FieldErrors* errors) {
  const RE2 key_form("[-._a-zA-Z0-9]{1,253}");
  for (const char* field : {"data", "binaryData"}) {
    const char* other = *field == 'd' ? "binaryData" : "data";
    const kube::Json entries = map.value(field, kube::Json::object());
    const kube::Json others = map.value(other, kube::Json::object());
    if (!entries.is_object()) continue;
    for (const auto& [key, value] : entries.items()) {
      const std::string path = fmt::format("{}[{}]", field, key);
      if (!RE2::FullMatch(key, key_form) || key == "." || key == "..") {
        errors->push_back(
            kube::InvalidValue(path, key,
                               "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
                               "'key.name', "
                               " or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"));
      }
      if (others.is_object() && others.contains(key)) {
        errors->push_back(kube::InvalidValue(path, key, fmt::format("duplicate of key present in {}", other)));
      }
    }
  }
}

void ValidateImmutableData(const kube::Json* old, const kube::Json& object, kube::FieldErrors* errors) {
  if (old == nullptr || !old->value("immutable", false)) return;
  for (const char* field : {"data", "binaryData"}) {
    if (old->value(field, kube::Json()) != object.value(field, kube::Json())) {
      errors->push_back(kube::Forbidden(field, "field is immutable when `immutable` is set"));
    }
  }
}

}  // namespace

std::string Base64(std::string_view text) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < text.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = (bits << 8) | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k <= text.size() ? kAlphabet[(bits >> (18 - 6 * k)) & 63] : '=';
    }
  }
  return out;
}

void DefaultBuiltin(const ResourceInfo& info, kube::Json* object, uint64_t serial) {
  const std::string& kind = info.resource.kind;
  if (kind == "Pod") DefaultPod(object);
  if (kind == "Service") DefaultService(object, serial);
  if (kind == "Secret") DefaultSecret(object);
  if (kind == "Namespace") {
    (*object)["spec"]["finalizers"] = kube::Json::array({"kubernetes"});
    (*object)["status"]["phase"] = "Active";
    kube::Json& labels = (*object)["metadata"]["labels"];
    if (!labels.is_object()) labels = kube::Json::object();
    labels["kubernetes.io/metadata.name"] = (*object)["metadata"].value("name", "");
  }
  if (kind == "NetworkPolicy" && (*object)["spec"].is_object()) {
    kube::Json& spec = (*object)["spec"];
    Default(&spec, "podSelector", kube::Json::object());
    if (!spec.contains("policyTypes")) {
      spec["policyTypes"] = kube::Json::array({"Ingress"});
      if (spec.contains("egress")) spec["policyTypes"].push_back("Egress");
    }
  }
}

void ValidateBuiltin(const ResourceInfo& info, const kube::Json* old, const kube::Json& object,
                     kube::FieldErrors* errors) {
  const std::string& kind = info.resource.kind;
  if (kind == "Pod") ValidatePod(old, object, errors);
  if (kind == "ConfigMap") ValidateConfigMap(object, errors);
  if (kind == "ConfigMap" || kind == "Secret") ValidateImmutableData(old, object, errors);
  if (kind == "ResourceQuota") ValidateQuantities(object, "/spec/hard", "spec.hard", errors);
  if (kind == "Service" && old != nullptr &&
      old->value("spec", kube::Json::object()).value("clusterIP", "") !=
          object.value("spec", kube::Json::object()).value("clusterIP", "")) {
    errors->push_back(
        kube::InvalidValue("spec.clusterIP", object["spec"].value("clusterIP", ""), "field is immutable"));
  }
  if (kind == "CustomResourceDefinition") ValidateCrd(object, errors);
}

bool IsDnsLabel(std::string_view name) {
  return name.size() <= 63 &&
         RE2::FullMatch(re2::StringPiece(name.data(), name.size()), "[a-z0-9]([-a-z0-9]*[a-z0-9])?");
}

bool IsDnsSubdomain(std::string_view name) {
  return name.size() <= 253 && RE2::FullMatch(re2::StringPiece(name.data(), name.size()),
                                              "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
}

void ValidateName(const ResourceInfo& info, const std::string& name, kube::FieldErrors* errors) {
  if (name.empty()) {
    errors->push_back(kube::RequiredValue("metadata.name", "name or generateName is required"));
    return;
  }
  const std::string& kind = info.resource.kind;
  const bool label = kind == "Namespace" || kind == "Service";
  if (label ? IsDnsLabel(name) : IsDnsSubdomain(name)) return;
  errors->push_back(kube::InvalidValue(
      "metadata.name", name,
      label ? "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
              "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
              "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            : "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
              "'-' "
              "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
              "regex used for validation is "
              "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"));
}

void ValidateMetadata(const kube::Json& metadata, kube::FieldErrors* errors) {
  const RE2 key_form("([A-Za-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?");
  const RE2 value_form("([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?");
  for (const char* map : {"labels", "annotations"}) {
    const auto it = metadata.find(map);
    if (it == metadata.end() || !it->is_object()) continue;
    size_t bytes = 0;
    for (const auto& [key, value] : it->items()) {
      const std::string path = fmt::format("metadata.{}", map);
      if (!RE2::FullMatch(key, key_form)) {
        errors->push_back(kube::InvalidValue(path, key,
                                             "name part must consist of alphanumeric characters, "
                                             "'-', '_' or '.'"));
      }
      if (!value.is_string()) continue;
      bytes += key.size() + value.get_ref<const std::string&>().size();
      if (*map == 'l' && !RE2::FullMatch(value.get<std::string>(), value_form)) {
        errors->push_back(kube::InvalidValue(path, value,
                                             "a valid label must be an empty string or consist of alphanumeric "
                                             "characters, '-', '_' or '.', and must start and end with an alphanumeric "
                                             "character"));
      }
    }
    if (*map == 'a' && bytes > 256 * 1024) {
      errors->push_back({"FieldValueTooLong", "metadata.annotations", "Too long: may not be more than 262144 bytes"});
    }
  }
}

}  // namespace medley::localcluster::apiserver
