// Parses JSON from the network, with limits and with errors that name the place. Internal to feeds/. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace medley::sched {

// Bound the memory that a body may need: nlohmann's tree takes 16 to 100 bytes per value.
inline constexpr int kMaxJsonDepth = 32;
inline constexpr size_t kMaxJsonValues = 4'000'000;

// Errors: InvalidArgument "not JSON at byte N"; ResourceExhausted for too many values or levels.
absl::StatusOr<nlohmann::json> ParseJsonBody(std::string_view body);

// Return the member `key` of the object `parent`, by reference. Errors: InvalidArgument naming `where`.key, if the
// member is missing or has another type.
absl::StatusOr<const nlohmann::json*> JsonObject(const nlohmann::json& parent, const char* key, std::string_view where);
absl::StatusOr<const nlohmann::json*> JsonArray(const nlohmann::json& parent, const char* key, std::string_view where);
absl::StatusOr<std::string> JsonString(const nlohmann::json& parent, const char* key, std::string_view where);
absl::StatusOr<double> JsonNumber(const nlohmann::json& parent, const char* key, std::string_view where);
// Returns an empty string if the member is missing or null.
absl::StatusOr<std::string> JsonOptionalString(const nlohmann::json& parent, const char* key, std::string_view where);

}  // namespace medley::sched
