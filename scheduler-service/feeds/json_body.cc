#include "scheduler-service/feeds/json_body.h"

#include <nlohmann/json.hpp>

#include "common/base/status.h"

namespace medley::sched {
namespace {

using nlohmann::json;

// A first pass that allocates nothing: it counts values, checks the depth and reports syntax errors.
class Limits final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t) override { return Count(); }
  bool number_float(number_float_t, const string_t&) override { return Count(); }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool key(string_t&) override { return true; }
  bool start_object(size_t) override { return Count() && Down(); }
  bool end_object() override { return Up(); }
  bool start_array(size_t) override { return Count() && Down(); }
  bool end_array() override { return Up(); }
  bool parse_error(size_t position, const std::string& token, const json::exception&) override {
    status_ = base::InvalidArgument("not JSON at byte {} (near '{}')", position, Printable(token));
    return false;
  }
  const absl::Status& status() const { return status_; }

 private:
  static std::string Printable(const std::string& token) {
    std::string text;
    for (const char c : token.substr(0, 20)) text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    return text;
  }
  bool Count() {
    if (++values_ <= kMaxJsonValues) return true;
    status_ = base::ResourceExhausted("more than {} JSON values", kMaxJsonValues);
    return false;
  }
  bool Down() {
    if (++depth_ <= kMaxJsonDepth) return true;
    status_ = base::ResourceExhausted("JSON nested deeper than {}", kMaxJsonDepth);
    return false;
  }
  bool Up() {
    --depth_;
    return true;
  }

  size_t values_ = 0;
  int depth_ = 0;
  absl::Status status_;
};

absl::StatusOr<const json*> Member(const json& parent, const char* key, std::string_view where) {
  if (!parent.is_object()) return base::InvalidArgument("{}: {}, want an object", where, parent.type_name());
  const auto found = parent.find(key);
  if (found == parent.end()) return base::InvalidArgument("{}.{}: is missing", where, key);
  return &*found;
}

}  // namespace

absl::StatusOr<json> ParseJsonBody(std::string_view body) {
  Limits limits;
  if (!json::sax_parse(body.begin(), body.end(), &limits)) {
    return limits.status().ok() ? base::InvalidArgument("not JSON") : limits.status();
  }
  json tree = json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  if (tree.is_discarded()) return base::InvalidArgument("not JSON");
  return tree;
}

absl::StatusOr<const json*> JsonObject(const json& parent, const char* key, std::string_view where) {
  MEDLEY_ASSIGN_OR_RETURN(const json* value, Member(parent, key, where));
  if (!value->is_object()) return base::InvalidArgument("{}.{}: {}, want an object", where, key, value->type_name());
  return value;
}

absl::StatusOr<const json*> JsonArray(const json& parent, const char* key, std::string_view where) {
  MEDLEY_ASSIGN_OR_RETURN(const json* value, Member(parent, key, where));
  if (!value->is_array()) return base::InvalidArgument("{}.{}: {}, want an array", where, key, value->type_name());
  return value;
}

absl::StatusOr<std::string> JsonString(const json& parent, const char* key, std::string_view where) {
  MEDLEY_ASSIGN_OR_RETURN(const json* value, Member(parent, key, where));
  if (!value->is_string()) return base::InvalidArgument("{}.{}: {}, want a string", where, key, value->type_name());
  return value->get<std::string>();
}

absl::StatusOr<double> JsonNumber(const json& parent, const char* key, std::string_view where) {
  MEDLEY_ASSIGN_OR_RETURN(const json* value, Member(parent, key, where));
  if (!value->is_number()) return base::InvalidArgument("{}.{}: {}, want a number", where, key, value->type_name());
  return value->get<double>();
}

absl::StatusOr<std::string> JsonOptionalString(const json& parent, const char* key, std::string_view where) {
  if (!parent.is_object()) return base::InvalidArgument("{}: {}, want an object", where, parent.type_name());
  const auto found = parent.find(key);
  if (found == parent.end() || found->is_null()) return std::string();
  return JsonString(parent, key, where);
}

}  // namespace medley::sched
