#include "localcluster/apiserver/apply.h"

#include <fmt/format.h>

#include <map>

#include "kube/json_access.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/fieldset.h"

namespace medley::localcluster::apiserver {
namespace {

// The fields that can be owned: not the object's identity, and not what the server fills in.
kube::Json Ownable(kube::Json object) {
  object.erase("apiVersion");
  object.erase("kind");
  const auto it = object.find("metadata");
  if (it == object.end() || !it->is_object()) return object;
  for (const char* name : {"name", "namespace", "uid", "resourceVersion", "generation", "selfLink", "creationTimestamp",
                           "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "generateName"}) {
    it->erase(name);
  }
  if (it->empty()) object.erase("metadata");
  return object;
}

struct Entry {
  std::string manager;
  std::string operation;
  std::string subresource;
  std::string api_version;
  std::string time;
  FieldSet fields;

  bool Is(const std::string& m, const char* op, const std::string& sub) const {
    return manager == m && operation == op && subresource == sub;
  }
};

std::vector<Entry> ReadEntries(const kube::Json& object) {
  std::vector<Entry> out;
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return out;
  const auto list = metadata->find("managedFields");
  if (list == metadata->end() || !list->is_array()) return out;
  for (const kube::Json& one : *list) {
    if (!one.is_object() || !one.contains("fieldsV1")) continue;
    out.push_back({kube::GetString(one, "manager"), kube::GetString(one, "operation"),
                   kube::GetString(one, "subresource"), kube::GetString(one, "apiVersion"),
                   kube::GetString(one, "time"), FromFieldsV1(one["fieldsV1"])});
  }
  return out;
}

void WriteEntries(const std::vector<Entry>& entries, kube::Json* object) {
  kube::Json list = kube::Json::array();
  for (const Entry& entry : entries) {
    if (entry.fields.empty()) continue;
    kube::Json one = {{"manager", entry.manager},        {"operation", entry.operation},
                      {"apiVersion", entry.api_version}, {"time", entry.time},
                      {"fieldsType", "FieldsV1"},        {"fieldsV1", ToFieldsV1(entry.fields)}};
    if (!entry.subresource.empty()) one["subresource"] = entry.subresource;
    list.push_back(std::move(one));
  }
  kube::Json& metadata = (*object)["metadata"];
  if (list.empty()) {
    metadata.erase("managedFields");
  } else {
    metadata["managedFields"] = std::move(list);
  }
}

void Subtract(FieldSet* from, const FieldSet& what) {
  for (const FieldPath& path : what) from->erase(path);
}

bool IsPrefix(const FieldPath& prefix, const FieldPath& path) {
  return prefix.size() <= path.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

// Whether an entry other than `self` owns `path` or a field inside it.
bool OwnedByOthers(const std::vector<Entry>& entries, const Entry* self, const FieldPath& path) {
  for (const Entry& entry : entries) {
    if (&entry == self) continue;
    const auto it = entry.fields.lower_bound(path);
    if (it != entry.fields.end() && IsPrefix(path, *it)) return true;
  }
  return false;
}

// Describes a manager as a real server does.
std::string Describe(const Entry& entry) {
  std::string who = fmt::format("\"{}\"", entry.manager);
  if (!entry.subresource.empty()) who += fmt::format(" with subresource \"{}\"", entry.subresource);
  if (entry.operation != "Update") return who;
  who += " using " + entry.api_version;
  if (!entry.time.empty()) who += " at " + entry.time;
  return who;
}

absl::Status ConflictsError(const std::vector<Entry>& entries, const Entry& self, const FieldSet& changed) {
  kube::Json causes = kube::Json::array();
  std::map<std::string, std::vector<std::string>> by_manager;
  for (const Entry& entry : entries) {
    if (&entry == &self) continue;
    for (const FieldPath& path : changed) {
      if (!entry.fields.contains(path)) continue;
      const std::string who = Describe(entry);
      causes.push_back(
          {{"reason", "FieldManagerConflict"}, {"message", "conflict with " + who}, {"field", PathText(path)}});
      by_manager[who].push_back(PathText(path));
    }
  }
  if (causes.empty()) return absl::OkStatus();
  std::string text;
  for (const auto& [who, fields] : by_manager) {
    if (!text.empty()) text += "\n";
    if (fields.size() == 1) {
      text += fmt::format("conflict with {}: {}", who, fields[0]);
    } else {
      text += fmt::format("conflicts with {}:", who);
      for (const std::string& field : fields) text += "\n- " + field;
    }
  }
  const size_t n = causes.size();
  return ApiError(409, "Conflict", fmt::format("Apply failed with {} conflict{}: {}", n, n == 1 ? "" : "s", text),
                  {{"causes", std::move(causes)}});
}

// Removes the fields that `self` had and that `now` lacks, outermost first, unless others own some of them.
void RemoveAbandoned(const std::vector<Entry>& entries, const Entry& self, const FieldSet& now,
                     const kube::Schema& schema, kube::Json* object) {
  std::vector<FieldPath> dropped;
  for (const FieldPath& path : self.fields) {
    if (!now.contains(path)) dropped.push_back(path);
  }
  std::stable_sort(dropped.begin(), dropped.end(),
                   [](const FieldPath& a, const FieldPath& b) { return a.size() < b.size(); });
  for (const FieldPath& path : dropped) {
    if (OwnedByOthers(entries, &self, path)) continue;
    // Keep an empty container that now holds fields of this manager.
    const auto inside = now.lower_bound(path);
    if (inside != now.end() && IsPrefix(path, *inside)) continue;
    RemovePath(object, schema, path);
  }
}

kube::Json KeepOnly(const kube::Json& config, const std::string& subresource, bool has_status) {
  kube::Json out = config;
  if (subresource == "status") {
    for (auto it = out.begin(); it != out.end();) {
      const bool keep =
          it.key() == "status" || it.key() == "metadata" || it.key() == "kind" || it.key() == "apiVersion";
      it = keep ? std::next(it) : out.erase(it);
    }
  } else if (has_status) {
    out.erase("status");
  }
  return out;
}

}  // namespace

void TrackUpdate(const ResourceInfo& info, const kube::Json* old, kube::Json* next, const std::string& manager,
                 const std::string& subresource, const std::string& now) {
  const bool given = next->contains("metadata") && (*next)["metadata"].contains("managedFields");
  std::vector<Entry> entries = given ? ReadEntries(*next) : old != nullptr ? ReadEntries(*old) : std::vector<Entry>();
  if (old == nullptr) entries.clear();
  const FieldDiff diff = DiffFields(old == nullptr ? kube::Json::object() : Ownable(*old), Ownable(*next), info.schema);
  if (!diff.changed.empty() || !diff.removed.empty()) {
    Entry* self = nullptr;
    for (Entry& entry : entries) {
      Subtract(&entry.fields, diff.removed);
      if (entry.Is(manager, "Update", subresource)) {
        self = &entry;
      } else {
        Subtract(&entry.fields, diff.changed);
      }
    }
    if (self == nullptr) {
      entries.push_back({manager, "Update", subresource, "", "", {}});
      self = &entries.back();
    }
    self->fields.insert(diff.changed.begin(), diff.changed.end());
    self->api_version = info.resource.ApiVersion();
    self->time = now;
  }
  WriteEntries(entries, next);
}

absl::StatusOr<kube::Json> MergeApply(const ResourceInfo& info, const kube::Json& live, const kube::Json& config,
                                      const WriteOptions& options, const std::string& now) {
  const kube::Json& given = config.at("metadata");
  if (given.contains("managedFields") && !given["managedFields"].empty()) {
    return BadRequest("metadata.managedFields must be nil");
  }
  const kube::Json wanted = KeepOnly(config, options.subresource, info.has_status);
  std::vector<Entry> entries = ReadEntries(live);
  size_t mine = 0;
  while (mine < entries.size() && !entries[mine].Is(options.manager, "Apply", options.subresource)) {
    ++mine;
  }
  if (mine == entries.size()) {
    entries.push_back({options.manager, "Apply", options.subresource, "", "", {}});
  }
  Entry& self = entries[mine];
  const FieldSet fields = ToFieldSet(Ownable(wanted), info.schema);
  kube::Json merged = MergeByStructure(live, wanted, info.schema);
  FieldDiff diff = DiffFields(Ownable(live), Ownable(merged), info.schema);
  if (!options.force) {
    if (absl::Status status = ConflictsError(entries, self, diff.changed); !status.ok()) return status;
  }
  for (Entry& entry : entries) {
    if (&entry != &self) Subtract(&entry.fields, diff.changed);
  }
  RemoveAbandoned(entries, self, fields, info.schema, &merged);
  const bool same = self.fields == fields && diff.changed.empty();
  self.fields = fields;
  self.api_version = info.resource.ApiVersion();
  if (!same || self.time.empty()) self.time = now;
  WriteEntries(entries, &merged);
  kube::Json& metadata = merged["metadata"];
  if (given.contains("resourceVersion")) {
    metadata["resourceVersion"] = given["resourceVersion"];
  } else {
    metadata.erase("resourceVersion");
  }
  if (given.contains("uid")) metadata["uid"] = given["uid"];
  return merged;
}

bool SameButTimes(const kube::Json& a, const kube::Json& b) {
  const auto strip = [](kube::Json json) {
    const auto metadata = json.find("metadata");
    if (metadata != json.end() && metadata->contains("managedFields")) {
      for (kube::Json& one : (*metadata)["managedFields"]) one.erase("time");
    }
    return json;
  };
  return a == b || strip(a) == strip(b);
}

}  // namespace medley::localcluster::apiserver
