// A JSON body from the network, under limits, with errors that say where. Internal to feeds/. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace medley::sched {

// Bounds what a small body may make of memory: nlohmann's tree takes 16 to 100 bytes a value.
inline constexpr int kMaxJsonDepth = 32;
inline constexpr size_t kMaxJsonValues = 4'000'000;

// Errors: InvalidArgument "not JSON at byte N"; ResourceExhausted for depth and number of values.
absl::StatusOr<nlohmann::json> ParseJsonBody(std::string_view body);

// The member `key` of an object, by reference. Errors name `where`.key: absent, or another type.
absl::StatusOr<const nlohmann::json*> JsonObject(const nlohmann::json& parent, const char* key, std::string_view where);
absl::StatusOr<const nlohmann::json*> JsonArray(const nlohmann::json& parent, const char* key, std::string_view where);
absl::StatusOr<std::string> JsonString(const nlohmann::json& parent, const char* key, std::string_view where);
absl::StatusOr<double> JsonNumber(const nlohmann::json& parent, const char* key, std::string_view where);
// Empty where absent or null.
absl::StatusOr<std::string> JsonOptionalString(const nlohmann::json& parent, const char* key, std::string_view where);

}  // namespace medley::sched
