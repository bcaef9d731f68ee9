// Sets of fields, in the form of managedFields, which record which manager owns which part of an object.
//
// A path is a list of FieldsV1 elements: "f:spec", "k:{\"name\":\"a\"}", "v:\"x\"". The members of a set are leaves,
// atomic maps and lists, empty containers, and items of keyed lists, but not the plain maps around them. Untyped maps
// are granular and untyped lists are atomic, as in structured-merge-diff. Pure functions.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kube/schema/schema.h"

namespace medley::localcluster::apiserver {

using FieldPath = std::vector<std::string>;
using FieldSet = std::set<FieldPath>;

FieldSet ToFieldSet(const kube::Json& value, const kube::Schema& schema);

// What writing `b` over `a` changes or adds, and what it removes.
struct FieldDiff {
  FieldSet changed;
  FieldSet removed;
};
FieldDiff DiffFields(const kube::Json& a, const kube::Json& b, const kube::Schema& schema);

kube::Json ToFieldsV1(const FieldSet& set);
FieldSet FromFieldsV1(const kube::Json& fields);

// ".spec.replicas", ".spec.containers[name=\"a\"].image"
std::string PathText(const FieldPath& path);

// Merges `config` into `live`: maps and keyed lists are merged, all other values are replaced.
kube::Json MergeByStructure(const kube::Json& live, const kube::Json& config, const kube::Schema& schema);

// Removes the value at `path`, and containers that become empty by it.
void RemovePath(kube::Json* value, const kube::Schema& schema, const FieldPath& path);

// "k:{...}" of an item of a keyed list; "" if the item lacks a key.
std::string ItemKey(const kube::Json& item, const kube::Schema& list);

}  // namespace medley::localcluster::apiserver
