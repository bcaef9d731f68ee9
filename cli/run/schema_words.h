// What is wrong with the values of a manifest, in words and with what was probably meant, by the schemas of the CRDs.
// An API server says the same in its own terms. Pure.
#pragma once

#include <string>
#include <vector>

#include "kube/schema/schema.h"

namespace medley::cli {

// Sentences such as "spec.model.task: `multiclass` is not one of binary, multiClass; did you mean `multiClass`?",
// with paths below `path`. Missing and unknown fields are not looked for. At most `most` sentences.
std::vector<std::string> WrongValues(const kube::Json& value, const kube::Schema& schema, const std::string& path,
                                     size_t most);

// What a text with a unit was probably meant to be: "5 min" is 5m where durations are allowed, "16 GB" is 16G. Empty:
// it matches `pattern`, or nothing close to it does.
std::string MeantByUnit(const std::string& text, const std::string& pattern);

}  // namespace medley::cli
