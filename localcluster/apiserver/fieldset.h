// Sets of fields, as managedFields has them: which manager owns which part of an object.
//
// A path is a list of FieldsV1 elements: "f:spec", "k:{\"name\":\"a\"}", "v:\"x\"". Leaves, atomic maps
// and lists, empty containers and items of keyed lists are members; plain maps in between are not.
// Untyped maps are granular and untyped lists atomic, as in structured-merge-diff. Pure functions.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "localcluster/apiserver/schema.h"

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

// `config` laid over `live`: maps and keyed lists merge, everything else is replaced.
Json MergeByStructure(const Json& live, const Json& config, const Schema& schema);

// Removes the value at `path`, and the containers that this leaves empty.
void RemovePath(Json* value, const Schema& schema, const FieldPath& path);

// "k:{...}" of an item of a keyed list; "" when it lacks a key.
std::string ItemKey(const Json& item, const Schema& list);

}  // namespace medley::kube::apiserver
