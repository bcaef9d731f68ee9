// What differs between two documents, field by field, for messages. Pure functions, thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace medley::document {

struct Difference {
  std::string field;   // "spec.training.hidden[1]"
  std::string before;  // as JSON, at most kLongestValue characters; "not set" where the field does not exist
  std::string after;
  bool operator==(const Difference&) const = default;
};

inline constexpr size_t kLongestValue = 80;

// The differences below `field`, in the order of the fields' names. A list of another length is one difference. Numbers
// are compared by value: 1 and 1.0 are equal.
std::vector<Difference> Differences(const nlohmann::json& before, const nlohmann::json& after,
                                    const std::string& field);

// "spec.training.batchSize is 512 in the checkpoint and 256 in this job; spec.model.name ...", of at most `most`
// differences, and how many more there are. `old_place` and `new_place`: "in the checkpoint", "in this job".
std::string Sentence(const std::vector<Difference>& differences, const std::string& old_place,
                     const std::string& new_place, size_t most = 8);

}  // namespace medley::document
