#include "localcluster/apiserver/rest.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/status.h"
#include "kube/json_access.h"
#include "kube/schema/shape.h"
#include "kube/schema/validate.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/apply.h"
#include "localcluster/apiserver/builtin.h"

namespace medley::localcluster::apiserver {
namespace {

constexpr int kMaxTries = 100;  // conflicts with other writers before a write fails

// metadata.generation counts changes of everything except metadata and status.
bool SpecDiffers(const kube::Json& a, const kube::Json& b) {
  const auto strip = [](kube::Json json) {
    for (const char* name : {"metadata", "status", "apiVersion"}) json.erase(name);
    return json;
  };
  return strip(a) != strip(b);
}

void KeepServerFields(const kube::Json& current, kube::Json* next) {
  kube::Json& metadata = (*next)["metadata"];
  const kube::Json& old = current["metadata"];
  for (const char* name :
       {"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "generateName"}) {
    if (old.contains(name)) {
      metadata[name] = old[name];
    } else {
      metadata.erase(name);
    }
  }
  metadata.erase("selfLink");
}

// Removes empty maps and lists of metadata, so that they are not stored.
void TidyMetadata(kube::Json* object) {
  kube::Json& metadata = (*object)["metadata"];
  for (const char* name : {"labels", "annotations", "finalizers", "ownerReferences", "managedFields"}) {
    const auto it = metadata.find(name);
    if (it != metadata.end() && (it->is_null() || it->empty())) metadata.erase(it);
  }
}

// Finalizers of a terminating object can only be removed.
absl::Status CheckFinalizers(const ResourceInfo& info, const kube::Key& key, const kube::Json& current,
                             const kube::Json& next) {
  if (!current["metadata"].contains("deletionTimestamp")) return absl::OkStatus();
  const kube::Json before = current["metadata"].value("finalizers", kube::Json::array());
  std::string fresh;
  for (const kube::Json& one : next["metadata"].value("finalizers", kube::Json::array())) {
    if (std::find(before.begin(), before.end(), one) == before.end()) fresh += (fresh.empty() ? "" : ", ") + one.dump();
  }
  if (fresh.empty()) return absl::OkStatus();
  return InvalidError(
      info.resource, key.name,
      {kube::Forbidden("metadata.finalizers",
                       fmt::format("no new finalizers can be added if the object is being deleted, found new "
                                   "finalizers []string{{{}}}",
                                   fresh))});
}

}  // namespace

bool CanBeRemoved(const kube::Json& object) {
  const kube::Json& metadata = object["metadata"];
  if (!metadata.contains("deletionTimestamp")) return false;
  if (metadata.contains("finalizers") && !metadata["finalizers"].empty()) return false;
  if (const auto spec = object.find("spec");
      object.value("kind", "") == "Namespace" && spec != object.end() && spec->contains("finalizers")) {
    return (*spec)["finalizers"].empty();
  }
  return metadata.value("deletionGracePeriodSeconds", int64_t{0}) == 0;
}

Rest::Rest(Registry& registry, Store& store, base::Clock& clock, std::function<uint64_t()> random)
    : registry_(registry), store_(store), clock_(clock), random_(std::move(random)) {}

// A UUID of version 4 (RFC 4122, section 4.4).
std::string Rest::NewUid() {
  base::MutexLock lock(random_mutex_);
  const uint64_t a = random_();
  const uint64_t b = random_();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xfff,
                     0x8000 | ((b >> 48) & 0x3fff), b & 0xffffffffffffULL);
}

std::string Rest::RandomSuffix() {
  static constexpr char kLetters[] = "bcdfghjklmnpqrstvwxz2456789";
  base::MutexLock lock(random_mutex_);
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix += kLetters[random_() % (sizeof(kLetters) - 1)];
  return suffix;
}

absl::StatusOr<kube::ObjectPtr> Rest::Get(const ResourceInfo& info, const kube::Key& key) const {
  kube::ObjectPtr object = store_.Get(info.bucket(), key);
  if (object == nullptr) return NotFoundError(info.resource, key.name);
  return object;
}

absl::Status Rest::Shape(const ResourceInfo& info, kube::Json* object, const WriteOptions& options,
                         bool defaults) const {
  std::vector<kube::UnknownField> unknown;
  kube::Prune(object, info.schema, "", &unknown);
  if (!unknown.empty() && options.validation == FieldValidation::kStrict) {
    std::string list;
    for (const kube::UnknownField& field : unknown) {
      list += (list.empty() ? "" : ", ") + fmt::format("unknown field \"{}\"", field.path);
    }
    return BadRequest(
        fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: strict decoding "
                    "error: {2}",
                    info.resource.kind, info.resource.version, list));
  }
  for (const kube::UnknownField& field : unknown) {
    if (options.validation == FieldValidation::kWarn && options.warnings != nullptr) {
      options.warnings->push_back(fmt::format("unknown field \"{}\"", field.path));
    }
  }
  kube::FieldErrors errors;
  if (info.builtin) {
    kube::Normalize(object, info.schema);
    kube::ValidateSchema(*object, info.schema, nullptr, "", &errors);
  } else {
    // The server itself decodes the metadata of every object.
    kube::ValidateSchema(object->at("metadata"), info.schema.Field("metadata"), nullptr, "metadata", &errors);
  }
  for (const kube::FieldError& error : errors) {
    if (error.reason != "FieldValueTypeInvalid") continue;
    return BadRequest(
        fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: json: cannot "
                    "unmarshal field {2}: {3}",
                    info.resource.kind, info.resource.version, error.field, error.what));
  }
  if (defaults) {
    kube::ApplyDefaults(object, info.schema);
    TidyMetadata(object);
  }
  return absl::OkStatus();
}

absl::Status Rest::CheckNamespace(const ResourceInfo& info, const std::string& ns) const {
  if (!info.resource.namespaced) return absl::OkStatus();
  const kube::Resource namespaces = kube::resources::Namespaces();
  const kube::ObjectPtr found = store_.Get("/namespaces", {"", ns});
  if (found == nullptr) return NotFoundError(namespaces, ns);
  if (!found->deleting()) return absl::OkStatus();
  return ForbiddenError(info.resource, "",
                        fmt::format("unable to create new content in namespace {} because it is "
                                    "being terminated",
                                    ns));
}

absl::Status Rest::Prepare(const ResourceInfo& info, const std::string& ns, kube::Json* object,
                           const WriteOptions& options) {
  kube::Json& metadata = (*object)["metadata"];
  if (metadata.is_null()) metadata = kube::Json::object();
  MEDLEY_RETURN_IF_ERROR(Shape(info, object, options));
  if (!kube::GetString(metadata, "resourceVersion").empty()) {
    return BadRequest("resourceVersion should not be set on objects to be created");
  }
  if (info.resource.namespaced) {
    if (const std::string given = kube::GetString(metadata, "namespace"); !given.empty() && given != ns) {
      return BadRequest(
          "the namespace of the provided object does not match the namespace sent on "
          "the request");
    }
    metadata["namespace"] = ns;
  } else {
    metadata.erase("namespace");
  }
  if (kube::GetString(metadata, "name").empty() && !kube::GetString(metadata, "generateName").empty()) {
    metadata["name"] = kube::GetString(metadata, "generateName") + RandomSuffix();
  }
  for (const char* name :
       {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"}) {
    metadata.erase(name);
  }
  if (!options.restore || kube::GetString(metadata, "uid").empty()) metadata["uid"] = NewUid();
  if (!options.restore || kube::GetString(metadata, "creationTimestamp").empty()) {
    metadata["creationTimestamp"] = base::FormatTime(clock_.Now());
  }
  if (info.has_generation) metadata["generation"] = 1;
  if (info.has_status && info.resource.kind != "Node" && !options.restore) object->erase("status");
  if (info.builtin) {
    DefaultBuiltin(info, object, serial_.fetch_add(1));
    MEDLEY_RETURN_IF_ERROR(Check(info, nullptr, *object));
    if (info.resource.kind == "CustomResourceDefinition") {
      SetCrdStatus(object, base::FormatTime(clock_.Now()));
    }
    return absl::OkStatus();
  }
  return Check(info, nullptr, *object);
}

absl::StatusOr<kube::ObjectPtr> Rest::Create(const ResourceInfo& info, const std::string& ns, kube::Json object,
                                             const WriteOptions& options) {
  const bool generated = kube::GetString(object.value("metadata", kube::Json::object()), "name").empty();
  MEDLEY_RETURN_IF_ERROR(CheckNamespace(info, ns));
  MEDLEY_RETURN_IF_ERROR(Prepare(info, ns, &object, options));
  TrackUpdate(info, nullptr, &object, options.manager, "", base::FormatTime(clock_.Now()));
  for (int i = 0; i < kMaxTries; ++i) {
    const kube::Key key{info.resource.namespaced ? ns : "", object["metadata"].value("name", "")};
    if (store_.Get(info.bucket(), key) != nullptr) {
      if (!generated) return AlreadyExistsError(info.resource, key.name);
      object["metadata"]["name"] = object["metadata"].value("generateName", "") + RandomSuffix();
      continue;
    }
    if (options.dry_run) return std::make_shared<const kube::Object>(std::move(object));
    if (kube::ObjectPtr stored = store_.Commit(info.bucket(), key, nullptr, object)) {
      AfterCommit(info, stored, false);
      return stored;
    }
  }
  return AlreadyExistsError(info.resource, object["metadata"].value("name", ""));
}

// Returns the object to store if a writer wants to replace `current` by `next`.
absl::StatusOr<kube::Json> Rest::Next(const ResourceInfo& info, const kube::Key& key, const kube::Json& current,
                                      kube::Json next, const WriteOptions& options) const {
  if (!next.is_object() || (next.contains("metadata") && !next["metadata"].is_object())) {
    return BadRequest("the object provided is unrecognized: it must be a JSON object with metadata");
  }
  kube::Json& metadata = next["metadata"];
  if (metadata.is_null()) metadata = kube::Json::object();
  if (const std::string name = kube::GetString(metadata, "name"); !name.empty() && name != key.name) {
    return BadRequest(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})", name, key.name));
  }
  if (const std::string uid = kube::GetString(metadata, "uid");
      !uid.empty() && uid != kube::GetString(current["metadata"], "uid")) {
    return ConflictError(info.resource, key.name,
                         fmt::format("Precondition failed: UID in precondition: {}, UID in object "
                                     "meta: {}",
                                     uid, kube::GetString(current["metadata"], "uid")));
  }
  const std::string version = kube::GetString(metadata, "resourceVersion");
  if (!version.empty() && version != kube::GetString(current["metadata"], "resourceVersion")) {
    return ConflictError(info.resource, key.name,
                         "the object has been modified; please apply your changes to the latest "
                         "version and try again");
  }
  metadata["name"] = key.name;
  if (!key.ns.empty()) metadata["namespace"] = key.ns;
  next["apiVersion"] = info.resource.ApiVersion();
  next["kind"] = info.resource.kind;
  if (options.subresource == "status") {
    kube::Json merged = current;
    merged["apiVersion"] = info.resource.ApiVersion();
    if (next.contains("status")) {
      merged["status"] = std::move(next["status"]);
    } else {
      merged.erase("status");
    }
    if (metadata.contains("managedFields")) {
      merged["metadata"]["managedFields"] = metadata["managedFields"];
    }
    next = std::move(merged);
  } else if (info.has_status) {
    next.erase("status");
    if (current.contains("status")) next["status"] = current["status"];
  }
  KeepServerFields(current, &next);
  MEDLEY_RETURN_IF_ERROR(Shape(info, &next, options));
  if (info.resource.kind == "Secret" || info.resource.kind == "Service") {
    const kube::Json status = next.value("status", kube::Json());
    DefaultBuiltin(info, &next, 0);
    if (!status.is_null()) next["status"] = status;
  }
  if (info.builtin && info.resource.kind == "CustomResourceDefinition") {
    MEDLEY_RETURN_IF_ERROR(Check(info, &current, next));
    SetCrdStatus(&next, base::FormatTime(clock_.Now()));
  }
  if (options.binding) {  // only a binding may assign a pod to a node
    kube::Json moved = current;
    moved["spec"]["nodeName"] = next["spec"]["nodeName"];
    MEDLEY_RETURN_IF_ERROR(Check(info, &moved, next));
  } else {
    MEDLEY_RETURN_IF_ERROR(Check(info, &current, next));
  }
  MEDLEY_RETURN_IF_ERROR(CheckFinalizers(info, key, current, next));
  if (info.has_generation && SpecDiffers(current, next)) {
    next["metadata"]["generation"] = current["metadata"].value("generation", int64_t{1}) + 1;
  }
  return next;
}

kube::ObjectPtr Rest::Commit(const ResourceInfo& info, const kube::Key& key, const kube::ObjectPtr& current,
                             kube::Json next) {
  const bool removed = CanBeRemoved(next);
  std::optional<kube::Json> commit;
  if (!removed) commit = std::move(next);
  kube::ObjectPtr stored = store_.Commit(info.bucket(), key, current, std::move(commit));
  if (stored != nullptr) AfterCommit(info, stored, removed);
  return stored;
}

absl::StatusOr<kube::ObjectPtr> Rest::Modify(const ResourceInfo& info, const kube::Key& key, const ChangeFn& change,
                                             const WriteOptions& options) {
  for (int i = 0; i < kMaxTries; ++i) {
    MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectPtr current, Get(info, key));
    MEDLEY_ASSIGN_OR_RETURN(kube::Json wanted, change(current->json()));
    MEDLEY_ASSIGN_OR_RETURN(kube::Json next, Next(info, key, current->json(), std::move(wanted), options));
    TrackUpdate(info, &current->json(), &next, options.manager, options.subresource, base::FormatTime(clock_.Now()));
    next["metadata"]["resourceVersion"] = current->resource_version();
    if (SameButTimes(current->json(), next)) return current;
    if (options.dry_run) return std::make_shared<const kube::Object>(std::move(next));
    if (kube::ObjectPtr stored = Commit(info, key, current, std::move(next))) return stored;
  }
  return ConflictError(info.resource, key.name, "too many concurrent changes; try again");
}

absl::StatusOr<kube::ObjectPtr> Rest::Apply(const ResourceInfo& info, const kube::Key& key, const kube::Json& config,
                                            const WriteOptions& options, bool* created) {
  const std::string now = base::FormatTime(clock_.Now());
  *created = false;
  for (int i = 0; i < kMaxTries; ++i) {
    const kube::ObjectPtr current = store_.Get(info.bucket(), key);
    if (current == nullptr && !options.subresource.empty()) {
      return NotFoundError(info.resource, key.name);
    }
    kube::Json shaped = config;
    MEDLEY_RETURN_IF_ERROR(Shape(info, &shaped, options, false));
    const kube::Json empty = {{"metadata", kube::Json::object()}};
    MEDLEY_ASSIGN_OR_RETURN(kube::Json wanted,
                            MergeApply(info, current == nullptr ? empty : current->json(), shaped, options, now));
    kube::Json next;
    if (current == nullptr) {
      MEDLEY_RETURN_IF_ERROR(CheckNamespace(info, key.ns));
      MEDLEY_RETURN_IF_ERROR(Prepare(info, key.ns, &wanted, options));
      next = std::move(wanted);
    } else {
      MEDLEY_ASSIGN_OR_RETURN(next, Next(info, key, current->json(), std::move(wanted), options));
      next["metadata"]["resourceVersion"] = current->resource_version();
      if (SameButTimes(current->json(), next)) return current;
    }
    *created = current == nullptr;
    if (options.dry_run) return std::make_shared<const kube::Object>(std::move(next));
    if (kube::ObjectPtr stored = Commit(info, key, current, std::move(next))) return stored;
  }
  return ConflictError(info.resource, key.name, "too many concurrent changes; try again");
}

}  // namespace medley::localcluster::apiserver
