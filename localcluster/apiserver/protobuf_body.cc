#include "localcluster/apiserver/protobuf_body.h"

#include <cstring>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "localcluster/apiserver/builtin.h"

namespace medley::localcluster::apiserver {
namespace {

constexpr char kTime[] = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
constexpr char kMicroTime[] = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
constexpr char kFields[] = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";

absl::Status Malformed() { return base::InvalidArgument("the protobuf body is malformed"); }

// A field of a message.
struct Field {
  uint64_t number = 0;
  int type = 0;
  uint64_t integer = 0;    // types 0, 1, 5
  std::string_view bytes;  // type 2
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool Done() const { return text_.empty(); }
  bool Next(Field* field) {
    uint64_t key = 0;
    if (!Varint(&key)) return false;
    field->number = key >> 3;
    field->type = static_cast<int>(key & 7);
    if (field->type == 0) return Varint(&field->integer);
    if (field->type == 1) return Fixed(8, &field->integer);
    if (field->type == 5) return Fixed(4, &field->integer);
    uint64_t size = 0;
    if (field->type != 2 || !Varint(&size) || size > text_.size()) return false;
    field->bytes = text_.substr(0, size);
    text_.remove_prefix(size);
    return true;
  }

 private:
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && !text_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(text_.front());
      text_.remove_prefix(1);
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }
  bool Fixed(size_t size, uint64_t* value) {
    if (text_.size() < size) return false;
    *value = 0;
    std::memcpy(value, text_.data(), size);  // on little-endian machines
    text_.remove_prefix(size);
    return true;
  }
  std::string_view text_;
};

class Decoder {
 public:
  explicit Decoder(const kube::Definitions& definitions) : definitions_(definitions) {}

  absl::Status Message(std::string_view text, const kube::Schema& schema, const kube::Json& numbers, kube::Json* out,
                       int depth) {
    if (depth > 40) return Malformed();
    Reader reader(text);
    while (!reader.Done()) {
      Field field;
      if (!reader.Next(&field)) return Malformed();
      const auto it = numbers.find(std::to_string(field.number));
      if (it == numbers.end()) continue;  // a field of a newer API version
      if (it->is_object()) {              // a message whose fields belong to its parent
        MEDLEY_RETURN_IF_ERROR(Message(field.bytes, schema, *it, out, depth + 1));
        continue;
      }
      const std::string& name = it->get_ref<const std::string&>();
      const kube::Json& node = schema.json()["properties"][name];
      MEDLEY_RETURN_IF_ERROR(Put(field, node, &(*out)[name], depth));
      // Go writes empty strings for fields that were never set.
      if ((*out)[name].is_null() || (*out)[name] == "") out->erase(name);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Put(const Field& field, const kube::Json& node, kube::Json* slot, int depth) {
    const kube::Schema schema(&node, &definitions_);
    if (schema && schema.type() == "array") {
      if (!slot->is_array()) *slot = kube::Json::array();
      MEDLEY_ASSIGN_OR_RETURN(kube::Json item, Value(field, schema.json()["items"], depth));
      slot->push_back(std::move(item));
      return absl::OkStatus();
    }
    if (schema && schema.json().contains("additionalProperties")) {
      return Entry(field, schema.json()["additionalProperties"], slot, depth);
    }
    MEDLEY_ASSIGN_OR_RETURN(*slot, Value(field, node, depth));
    return absl::OkStatus();
  }

  absl::Status Entry(const Field& field, const kube::Json& node, kube::Json* slot, int depth) {
    if (!slot->is_object()) *slot = kube::Json::object();
    Reader reader(field.bytes);
    std::string key;
    Field value;
    value.type = 2;
    while (!reader.Done()) {
      Field part;
      if (!reader.Next(&part)) return Malformed();
      if (part.number == 1) key = std::string(part.bytes);
      if (part.number == 2) value = part;
    }
    MEDLEY_ASSIGN_OR_RETURN((*slot)[key], Value(value, node, depth));
    return absl::OkStatus();
  }

  absl::StatusOr<kube::Json> Value(const Field& field, const kube::Json& node, int depth) {
    const auto ref = node.find("$ref");
    const std::string name = ref != node.end() && ref->is_string() ? ref->get<std::string>() : "";
    const kube::Schema schema(&node, &definitions_);
    if (!schema) return Malformed();
    if (name == kTime || name == kMicroTime) return Time(field, name == kMicroTime);
    if (name == kFields) {
      kube::Json fields = kube::Json::parse(Sub(field, 1).bytes, nullptr, false);
      return fields.is_discarded() ? kube::Json::object() : fields;
    }
    if (schema.quantity()) return kube::Json(std::string(Sub(field, 1).bytes));
    if (schema.int_or_string()) {
      if (Sub(field, 1).integer == 0) return kube::Json(static_cast<int32_t>(Sub(field, 2).integer));
      return kube::Json(std::string(Sub(field, 3).bytes));
    }
    if (schema.json().contains("x-proto")) {
      kube::Json out = kube::Json::object();
      MEDLEY_RETURN_IF_ERROR(Message(field.bytes, schema, schema.json()["x-proto"], &out, depth + 1));
      return out;
    }
    if (schema.type() == "boolean") return kube::Json(field.integer != 0);
    if (schema.type() == "integer") return kube::Json(static_cast<int64_t>(field.integer));
    if (schema.type() == "string" && schema.json().value("format", "") == "byte") {
      return kube::Json(Base64(field.bytes));
    }
    if (schema.type() == "string") return kube::Json(std::string(field.bytes));
    return kube::Json(nullptr);
  }

  // The last field `number` inside a message.
  static Field Sub(const Field& field, uint64_t number) {
    Reader reader(field.bytes);
    Field found;
    Field one;
    while (!reader.Done() && reader.Next(&one)) {
      if (one.number == number) found = one;
    }
    return found;
  }

  static absl::StatusOr<kube::Json> Time(const Field& field, bool micro) {
    if (field.bytes.empty()) return kube::Json(nullptr);
    const auto seconds = static_cast<int64_t>(Sub(field, 1).integer);
    const auto nanos = static_cast<int64_t>(Sub(field, 2).integer);
    if (seconds < -62135596800 || seconds > 253402300799) return Malformed();
    const base::WallTime time(base::seconds(seconds) +
                              std::chrono::duration_cast<std::chrono::microseconds>(base::nanoseconds(nanos)));
    return kube::Json(micro ? base::FormatTimeMicro(time) : base::FormatTime(time));
  }

  const kube::Definitions& definitions_;
};

}  // namespace

absl::StatusOr<kube::Json> DecodeProtobuf(std::string_view body, const kube::Definitions& definitions,
                                          std::string_view definition) {
  static constexpr std::string_view kMagic("k8s\0", 4);
  const kube::Schema schema = definitions.Find(definition);
  if (!body.starts_with(kMagic) || !schema || !schema.json().contains("x-proto")) {
    return Malformed();
  }
  Reader reader(body.substr(kMagic.size()));
  kube::Json out = kube::Json::object();
  while (!reader.Done()) {
    Field field;
    if (!reader.Next(&field)) return Malformed();
    if (field.number == 1) {  // runtime.Unknown.typeMeta
      Reader meta(field.bytes);
      while (!meta.Done()) {
        Field part;
        if (!meta.Next(&part)) return Malformed();
        out[part.number == 1 ? "apiVersion" : "kind"] = std::string(part.bytes);
      }
    } else if (field.number == 2) {
      MEDLEY_RETURN_IF_ERROR(Decoder(definitions).Message(field.bytes, schema, schema.json()["x-proto"], &out, 0));
    }
  }
  return out;
}

}  // namespace medley::localcluster::apiserver
