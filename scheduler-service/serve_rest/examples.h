// Examples of requests and responses for the OpenAPI document, as a service gave them. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace medley::sched {

// For a method of the service: {"request": ..., "response": ..., "parameters": {NAME: VALUE}}, each if it has one.
// examples.json has them; the tests send every request and check both against the schemas.
nlohmann::json ExamplesOf(const std::string& rpc);

// For an error, by its HTTP code.
nlohmann::json ErrorExample(int code);

}  // namespace medley::sched
