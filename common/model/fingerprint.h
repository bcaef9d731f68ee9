// What a job trains, as text: the fields of its spec that count for a purpose, and a hash of them.
//
// Every field of the schema counts, also one that a later version adds, unless a table says that it does not, and why.
// Two specs with one fingerprint differ only in such fields, and in how they write the same: 1 and 1.0, a default and
// its absence. Numbers are exact. Pure functions, thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <string_view>

namespace medley::model {

enum class Purpose : unsigned {
  kModel = 1,   // whether a job may continue from a checkpoint: all that decides its parameters
  kJob = 2,     // whether a coordinator may continue a journal: also what the job reports at its end
  kProfile = 4  // whether a profile is of the job's layers: all that decides what a step costs
};

// A field that does not count for some purposes. What lies below it does not count either.
struct Uncounted {
  const char* field;        // "training.optimizer.learningRate"; fields of a list's objects: "data.inputs[].scale"
  unsigned purposes;        // bits of Purpose
  const char* reason;       // a sentence's end: why
  const char* unless = "";  // a field with which it counts for kJob all the same
  bool presence = false;    // whether it is set and not 0 counts all the same
};
std::span<const Uncounted> UncountedFields();

// The fields of `spec` that count, with the schema's defaults, as an object. Empty if `spec` is no object.
nlohmann::json CountedFields(const nlohmann::json& spec, Purpose purpose);

// A hash of CountedFields, and the version of what it is a hash of: "2-0123456789abcdef". It is the same for a spec and
// for its CountedFields, and a new field of the schema does not change that of a job without it. Fingerprints of
// earlier versions of Medley have no "-", and say nothing about equality with one of this version.
std::string Fingerprint(const nlohmann::json& spec, Purpose purpose);

// That of Purpose::kProfile without the version: 16 hexadecimal digits, for names.
std::string ProfileHash(const nlohmann::json& spec);

// Whether two fingerprints are of one version, and so equal exactly if what counts is.
bool Comparable(std::string_view a, std::string_view b);

}  // namespace medley::model
