// Encodes Swagger 2.0 JSON as gnostic's openapi.v2.Document in protobuf's wire format, with only the fields that this
// server's documents have. The field numbers are those of gnostic's openapiv2/OpenAPIv2.proto.
#include "localcluster/apiserver/openapi.h"

namespace medley::localcluster::apiserver {
namespace {

class Message {
 public:
  void Varint(int field, uint64_t value) {
    Key(field, 0);
    Raw(value);
  }
  void Double(int field, double value) {
    Key(field, 1);
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));  // on little-endian machines
  }
  void Bytes(int field, const std::string& value) {
    Key(field, 2);
    Raw(value.size());
    out_ += value;
  }
  void Text(int field, const kube::Json& object, const char* name) {
    const auto it = object.find(name);
    if (it != object.end() && it->is_string()) Bytes(field, it->get<std::string>());
  }
  void Number(int field, const kube::Json& object, const char* name) {
    const auto it = object.find(name);
    if (it != object.end() && it->is_number()) Double(field, it->get<double>());
  }
  void Count(int field, const kube::Json& object, const char* name) {
    const auto it = object.find(name);
    if (it != object.end() && it->is_number_unsigned()) Varint(field, it->get<uint64_t>());
  }
  void Flag(int field, const kube::Json& object, const char* name) {
    const auto it = object.find(name);
    if (it != object.end() && it->is_boolean() && it->get<bool>()) Varint(field, 1);
  }
  const std::string& str() const { return out_; }

 private:
  void Key(int field, int type) { Raw(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type)); }
  void Raw(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  std::string out_;
};

std::string Named(const std::string& name, const std::string& value) {
  Message m;
  m.Bytes(1, name);
  m.Bytes(2, value);
  return m.str();
}

// gnostic's Any: the value as YAML text (JSON is YAML).
std::string Any(const kube::Json& value) {
  Message m;
  m.Bytes(2, kube::Dump(value));
  return m.str();
}

void Extensions(const kube::Json& object, int field, Message* m) {
  for (const auto& [name, value] : object.items()) {
    if (name.starts_with("x-")) m->Bytes(field, Named(name, Any(value)));
  }
}

std::string SchemaMessage(const kube::Json& schema);

std::string Properties(const kube::Json& properties) {
  Message m;
  for (const auto& [name, value] : properties.items()) {
    if (value.is_object()) m.Bytes(1, Named(name, SchemaMessage(value)));
  }
  return m.str();
}

std::string SchemaMessage(const kube::Json& schema) {
  Message m;
  m.Text(1, schema, "$ref");
  m.Text(2, schema, "format");
  m.Text(4, schema, "description");
  if (const auto it = schema.find("default"); it != schema.end()) m.Bytes(5, Any(*it));
  m.Number(7, schema, "maximum");
  m.Flag(8, schema, "exclusiveMaximum");
  m.Number(9, schema, "minimum");
  m.Flag(10, schema, "exclusiveMinimum");
  m.Count(11, schema, "maxLength");
  m.Count(12, schema, "minLength");
  m.Text(13, schema, "pattern");
  m.Count(14, schema, "maxItems");
  m.Count(15, schema, "minItems");
  if (const auto it = schema.find("required"); it != schema.end() && it->is_array()) {
    for (const kube::Json& one : *it) {
      if (one.is_string()) m.Bytes(19, one.get<std::string>());
    }
  }
  if (const auto it = schema.find("enum"); it != schema.end() && it->is_array()) {
    for (const kube::Json& one : *it) m.Bytes(20, Any(one));
  }
  if (const auto it = schema.find("additionalProperties"); it != schema.end()) {
    Message item;
    if (it->is_object()) item.Bytes(1, SchemaMessage(*it));
    if (it->is_boolean()) item.Varint(2, it->get<bool>() ? 1 : 0);
    m.Bytes(21, item.str());
  }
  if (const auto it = schema.find("type"); it != schema.end() && it->is_string()) {
    Message type;
    type.Bytes(1, it->get<std::string>());
    m.Bytes(22, type.str());
  }
  if (const auto it = schema.find("items"); it != schema.end() && it->is_object()) {
    Message items;
    items.Bytes(1, SchemaMessage(*it));
    m.Bytes(23, items.str());
  }
  if (const auto it = schema.find("properties"); it != schema.end() && it->is_object()) {
    m.Bytes(25, Properties(*it));
  }
  Extensions(schema, 31, &m);
  return m.str();
}

// A query parameter of type string.
std::string ParameterItem(const kube::Json& parameter) {
  Message query;
  query.Bytes(2, "query");
  query.Text(4, parameter, "name");
  query.Bytes(6, "string");
  Message non_body;
  non_body.Bytes(3, query.str());  // NonBodyParameter.query_parameter_sub_schema
  Message any;
  any.Bytes(2, non_body.str());  // Parameter.non_body_parameter
  Message item;
  item.Bytes(1, any.str());  // ParametersItem.parameter
  return item.str();
}

std::string Responses(const kube::Json& responses) {
  Message m;
  for (const auto& [code, response] : responses.items()) {
    Message one;
    one.Text(1, response, "description");
    if (const auto it = response.find("schema"); it != response.end()) {
      Message item;
      item.Bytes(1, SchemaMessage(*it));
      one.Bytes(2, item.str());
    }
    Message value;
    value.Bytes(1, one.str());
    m.Bytes(1, Named(code, value.str()));
  }
  return m.str();
}

std::string Operation(const kube::Json& operation) {
  Message m;
  m.Text(5, operation, "operationId");
  for (const kube::Json& parameter : operation.value("parameters", kube::Json::array())) {
    m.Bytes(8, ParameterItem(parameter));
  }
  m.Bytes(9, Responses(operation.value("responses", kube::Json::object())));
  Extensions(operation, 13, &m);
  return m.str();
}

std::string PathItem(const kube::Json& path) {
  static constexpr std::pair<const char*, int> kVerbs[] = {
      {"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"patch", 8}};
  Message m;
  for (const auto& [verb, field] : kVerbs) {
    if (const auto it = path.find(verb); it != path.end()) m.Bytes(field, Operation(*it));
  }
  return m.str();
}

}  // namespace

std::string OpenApiV2Protobuf(const kube::Json& document) {
  Message info;
  info.Bytes(1, "Kubernetes");
  info.Bytes(2, "v1.32.0");
  Message paths;
  for (const auto& [path, item] : document.at("paths").items()) {
    paths.Bytes(2, Named(path, PathItem(item)));
  }
  Message definitions;
  for (const auto& [name, schema] : document.at("definitions").items()) {
    definitions.Bytes(1, Named(name, SchemaMessage(schema)));
  }
  Message out;
  out.Bytes(1, "2.0");
  out.Bytes(2, info.str());
  out.Bytes(8, paths.str());
  out.Bytes(9, definitions.str());
  return out.str();
}

}  // namespace medley::localcluster::apiserver
