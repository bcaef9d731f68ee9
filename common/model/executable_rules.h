// What the runtime does with each field and value of a plan, for executable.cc.
#pragma once

#include <map>
#include <string_view>

#include "common/model/executable.h"

namespace medley::model {

struct FieldRule {
  FieldUse use = FieldUse::kRefused;
  const char* instead = "";  // kRefused: what the runtime does
};

struct ValueRule {
  bool executed = true;
  const char* instead = "";
};

// By full name without the package.
const std::map<std::string_view, FieldRule>& ExecutableFields();
// By name.
const std::map<std::string_view, ValueRule>& ExecutableValues();

}  // namespace medley::model
