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

namespace medley::kube::apiserver {

using FieldPath = std::vector<std::string>;
using FieldSet = std::set<FieldPath>;

FieldSet ToFieldSet(const Json& value, const Schema& schema);

// What writing `b` over `a` changes or adds, and what it removes.
struct FieldDiff {
  FieldSet changed;
  FieldSet removed;
};
FieldDiff DiffFields(const Json& a, const Json& b, const Schema& schema);

Json ToFieldsV1(const FieldSet& set);
FieldSet FromFieldsV1(const Json& fields);

// ".spec.replicas", ".spec.containers[name=\"a\"].image"
std::string PathText(const FieldPath& path);

// Merges `config` into `live`: maps and keyed lists are merged, all other values are replaced.
Json MergeByStructure(const Json& live, const Json& config, const Schema& schema);

// Removes the value at `path`, and containers that become empty by it.
void RemovePath(Json* value, const Schema& schema, const FieldPath& path);

// "k:{...}" of an item of a keyed list; "" if the item lacks a key.
std::string ItemKey(const Json& item, const Schema& list);

}  // namespace medley::kube::apiserver
