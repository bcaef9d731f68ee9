// Refuses fields that Medley's kinds do not have, before the API server drops them: a misspelled `objective` would take
// the spending cap with it. Also refuses values that the schemas do not allow, in words (schema_words.h).
#pragma once

#include <absl/status/status.h>

#include "kube/object.h"

namespace medley::cli {

// Checks an object of a kind of deploy/crds. Looks also into the parts that these leave open: volumes and pod
// templates. Errors: InvalidArgument that names every unknown field with its path, at most 10, and the field that was
// probably meant, and every value that its schema does not allow; InvalidArgument for a kind or version that does not
// exist.
absl::Status CheckFields(const kube::Object& object);

}  // namespace medley::cli
