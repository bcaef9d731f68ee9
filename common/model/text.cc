#include "common/model/text.h"

// The text forms: YAML or JSON -> a tree -> checked against the message's descriptor -> protobuf's JSON reader.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/closest.h"
#include "common/base/status.h"
#include "common/document/parse.h"

namespace medley::model {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using nlohmann::json;

// More than any of our messages needs. It bounds the memory of a message by more than the text's size: an empty object
// has two bytes as text, and hundreds as a message.
constexpr int kMaxObjects = 32'768;

// Checks a tree against the type of a message.
class TreeCheck {
 public:
  absl::Status Message(const json& value, const Descriptor& type, const std::string& path);

 private:
  absl::Status Single(const json& value, const FieldDescriptor& field, const std::string& path);
  absl::Status Map(const json& value, const FieldDescriptor& field, const std::string& path);
  absl::Status Field(const json& value, const FieldDescriptor& field, const std::string& path);
  // For a google.protobuf.Struct, whose meaning others check: each value is an object of its own in memory.
  absl::Status Free(const json& value);
  absl::Status CountOne();

  int objects_ = 0;
};

// A name that is `reserved` in the proto files was a field or a value once.
constexpr std::string_view kPlannerOptions = "medley.scheduler.v1.PlannerOptions";

std::string NoLongerAField(const Descriptor& type) {
  if (type.full_name() != kPlannerOptions) return "is no longer a field";
  return "is no longer a field: options of a planner are now in planner.options, by their own names, and a trained "
         "policy is in planner.policy (trained, name, inferenceOnly, returnPolicy): GET /v1/planners and medley plan "
         "--planners list them";
}

absl::Status Expect(const std::string& path, std::string_view what, const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return base::InvalidArgument("{}: must be {}, is {}", path, what, text);
}

template <typename Int>
absl::Status CheckInteger(const json& value, const std::string& path) {
  // Integers beyond 64 bits are floating point in the tree; 64-bit ones may be strings in the proto3 mapping.
  if (value.is_string() && sizeof(Int) == 8) return absl::OkStatus();  // protobuf reads and checks it
  if (!value.is_number()) return Expect(path, "an integer", value);
  const double number = value.get<double>();
  if (number != std::floor(number) || number < static_cast<double>(std::numeric_limits<Int>::min()) ||
      number > static_cast<double>(std::numeric_limits<Int>::max())) {
    return Expect(
        path, fmt::format("an integer in [{}, {}]", std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max()),
        value);
  }
  return absl::OkStatus();
}

// Which of the values a text means, also without the words that all of them begin with: "by-pool" means
// HIERARCHY_BY_POOL. `prefix`: these words. "": none is close.
std::string MeantValue(std::string word, const std::vector<std::string>& names, const std::string& prefix) {
  std::ranges::replace(word, '-', '_');
  std::ranges::replace(word, ' ', '_');
  if (std::string meant = base::Closest(word, names); !meant.empty()) return meant;
  std::vector<std::string> ends;
  for (const std::string& name : names) {
    if (name.starts_with(prefix)) ends.push_back(name.substr(prefix.size()));
  }
  const std::string end = base::Closest(word, ends);
  return end.empty() ? "" : prefix + end;
}

absl::Status CheckEnum(const json& value, const FieldDescriptor& field, const std::string& path) {
  const google::protobuf::EnumDescriptor& type = *field.enum_type();
  if (value.is_string() && type.FindValueByName(value.get_ref<const std::string&>()) != nullptr) {
    return absl::OkStatus();
  }
  constexpr std::string_view kUnspecified = "UNSPECIFIED";
  std::vector<std::string> names;
  std::string prefix;
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string& name = type.value(i)->name();
    if (name.ends_with(kUnspecified)) {
      prefix = name.substr(0, name.size() - kUnspecified.size());
    } else {
      names.push_back(name);
    }
  }
  if (value.is_string() && type.IsReservedName(value.get_ref<const std::string&>())) {
    return base::InvalidArgument("{}: {} is no longer a value; there are {}", path, value.get_ref<const std::string&>(),
                                 fmt::join(names, ", "));
  }
  const std::string meant = value.is_string() ? MeantValue(value.get_ref<const std::string&>(), names, prefix) : "";
  const absl::Status wrong = Expect(path, fmt::format("one of {}", fmt::join(names, ", ")), value);
  if (meant.empty()) return wrong;
  return base::InvalidArgument("{}; did you mean `{}`?", base::Message(wrong), meant);
}

absl::Status TreeCheck::Single(const json& value, const FieldDescriptor& field, const std::string& path) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Message(value, *field.message_type(), path);
    case FieldDescriptor::CPPTYPE_ENUM:
      return CheckEnum(value, field, path);
    case FieldDescriptor::CPPTYPE_STRING:
      return value.is_string() ? absl::OkStatus() : Expect(path, "a string", value);
    case FieldDescriptor::CPPTYPE_BOOL:
      return value.is_boolean() ? absl::OkStatus() : Expect(path, "true or false", value);
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return value.is_number() ? absl::OkStatus() : Expect(path, "a number", value);
    case FieldDescriptor::CPPTYPE_INT32:
      return CheckInteger<int32_t>(value, path);
    case FieldDescriptor::CPPTYPE_INT64:
      return CheckInteger<int64_t>(value, path);
    case FieldDescriptor::CPPTYPE_UINT32:
      return CheckInteger<uint32_t>(value, path);
    case FieldDescriptor::CPPTYPE_UINT64:
      return CheckInteger<uint64_t>(value, path);
  }
  return absl::OkStatus();
}

absl::Status TreeCheck::Map(const json& value, const FieldDescriptor& field, const std::string& path) {
  if (!value.is_object()) return Expect(path, "an object", value);
  const FieldDescriptor& element = *field.message_type()->map_value();
  for (const auto& [key, item] : value.items()) {
    MEDLEY_RETURN_IF_ERROR(Single(item, element, path + "." + key));
  }
  return absl::OkStatus();
}

absl::Status TreeCheck::Field(const json& value, const FieldDescriptor& field, const std::string& path) {
  if (value.is_null()) return absl::OkStatus();  // null: not given
  if (field.is_map()) return Map(value, field, path);
  if (!field.is_repeated()) return Single(value, field, path);
  if (!value.is_array()) return Expect(path, "a list", value);
  for (size_t i = 0; i < value.size(); ++i) {
    MEDLEY_RETURN_IF_ERROR(Single(value[i], field, fmt::format("{}[{}]", path, i)));
  }
  return absl::OkStatus();
}

const FieldDescriptor* FindField(const Descriptor& type, const std::string& name) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->json_name() == name || type.field(i)->name() == name) return type.field(i);
  }
  return nullptr;
}

std::vector<std::string> Names(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->json_name());
  return names;
}

absl::Status TreeCheck::CountOne() {
  if (++objects_ <= kMaxObjects) return absl::OkStatus();
  return base::InvalidArgument("the document has more than {} objects: split it, or leave out what is not used",
                               kMaxObjects);
}

absl::Status TreeCheck::Free(const json& value) {
  MEDLEY_RETURN_IF_ERROR(CountOne());
  if (!value.is_structured()) return absl::OkStatus();
  for (const json& item : value) MEDLEY_RETURN_IF_ERROR(Free(item));
  return absl::OkStatus();
}

absl::Status TreeCheck::Message(const json& value, const Descriptor& type, const std::string& path) {
  if (type.full_name() == "google.protobuf.Timestamp") {
    return value.is_string() ? absl::OkStatus() : Expect(path, "an RFC 3339 time", value);
  }
  if (!value.is_object()) return Expect(path.empty() ? "the document" : path, "an object", value);
  if (type.full_name() == "google.protobuf.Struct") return Free(value);
  MEDLEY_RETURN_IF_ERROR(CountOne());
  std::set<const FieldDescriptor*> seen;
  for (const auto& [key, item] : value.items()) {
    const std::string here = path.empty() ? key : path + "." + key;
    const FieldDescriptor* field = FindField(type, key);
    if (field == nullptr && type.IsReservedName(key)) {
      return base::InvalidArgument("{}: {}", here, NoLongerAField(type));
    }
    if (field == nullptr) return base::InvalidArgument("{}: unknown field{}", here, base::DidYouMean(key, Names(type)));
    if (!seen.insert(field).second) return base::InvalidArgument("{}: is given twice", here);
    MEDLEY_RETURN_IF_ERROR(Field(item, *field, here));
  }
  return absl::OkStatus();
}

std::string Print(const Message& message, bool pretty) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = pretty;
  options.always_print_primitive_fields = true;
  std::string out;
  const auto status = google::protobuf::util::MessageToJsonString(message, &out, options);
  MEDLEY_CHECK(status.ok(), "a message of ours must have a JSON form: " + status.ToString());
  return out;
}

}  // namespace

absl::Status ParseText(std::string_view text, Message& message, const document::Limits& limits) {
  std::string normal;
  {
    MEDLEY_ASSIGN_OR_RETURN(const json tree, document::Parse(text, limits));
    MEDLEY_RETURN_IF_ERROR(TreeCheck().Message(tree, *message.GetDescriptor(), ""));
    normal = tree.dump();
  }  // the tree takes the most memory
  message.Clear();
  const auto status = google::protobuf::util::JsonStringToMessage(normal, &message);
  if (!status.ok()) return base::InvalidArgument("{}", std::string(status.message()));
  return absl::OkStatus();
}

std::string ToJson(const Message& message, bool pretty) { return Print(message, pretty); }

std::string ToYaml(const Message& message) { return document::ToYaml(json::parse(Print(message, false))); }

}  // namespace medley::model
