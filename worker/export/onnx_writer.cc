#include "worker/export/onnx_writer.h"

#include <cstring>

namespace medley::worker {
namespace {

constexpr int kIrVersion = 7;

OnnxMessage ValueInfo(std::string_view name, int type, const std::vector<int64_t>& sizes) {
  OnnxMessage shape;
  shape.Sub(1, OnnxMessage().Text(2, "samples"));
  for (const int64_t size : sizes) shape.Sub(1, OnnxMessage().Int(1, size));
  return OnnxMessage().Text(1, name).Sub(2, OnnxMessage().Sub(1, OnnxMessage().Int(1, type).Sub(2, shape)));
}

OnnxMessage AttributeOf(const OnnxAttribute& attribute) {
  // AttributeProto.AttributeType
  constexpr int kFloatType = 1, kIntType = 2, kStringType = 3, kIntsType = 7, kStringsType = 8;
  OnnxMessage message;
  message.Text(1, attribute.name);
  if (const auto* value = std::get_if<int64_t>(&attribute.value)) return message.Int(3, *value).Int(20, kIntType);
  if (const auto* value = std::get_if<float>(&attribute.value)) return message.Float(2, *value).Int(20, kFloatType);
  if (const auto* value = std::get_if<std::string>(&attribute.value))
    return message.Text(4, *value).Int(20, kStringType);
  if (const auto* values = std::get_if<std::vector<std::string>>(&attribute.value)) {
    for (const std::string& value : *values) message.Text(9, value);
    return message.Int(20, kStringsType);
  }
  for (const int64_t value : std::get<std::vector<int64_t>>(attribute.value)) message.Int(8, value);
  return message.Int(20, kIntsType);
}

}  // namespace

OnnxMessage& OnnxMessage::Int(int field, int64_t value) {
  Varint(static_cast<uint64_t>(field) << 3);
  Varint(static_cast<uint64_t>(value));
  return *this;
}

OnnxMessage& OnnxMessage::Float(int field, float value) {
  Varint(static_cast<uint64_t>(field) << 3 | 5);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  bytes_.append(bytes, sizeof bytes);
  return *this;
}

OnnxMessage& OnnxMessage::Text(int field, std::string_view value) {
  Varint(static_cast<uint64_t>(field) << 3 | 2);
  Varint(value.size());
  bytes_ += value;
  return *this;
}

void OnnxMessage::Varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

void OnnxWriter::Input(std::string_view name, int type, const std::vector<int64_t>& shape) {
  graph_.Sub(11, ValueInfo(name, type, shape));
}

void OnnxWriter::Output(std::string_view name, const std::vector<int64_t>& shape) {
  graph_.Sub(12, ValueInfo(name, kOnnxFloat, shape));
}

void OnnxWriter::Tensor(std::string_view name, int type, const std::vector<int64_t>& shape, std::string_view bytes) {
  OnnxMessage tensor;
  for (const int64_t size : shape) tensor.Int(1, size);
  graph_.Sub(5, tensor.Int(2, type).Text(8, name).Text(9, bytes));
}

void OnnxWriter::Ints(std::string_view name, const std::vector<int64_t>& values) {
  Tensor(name, kOnnxInt64, {std::ssize(values)},
         {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)});
}

void OnnxWriter::Scalar(std::string_view name, float value) {
  Tensor(name, kOnnxFloat, {1}, {reinterpret_cast<const char*>(&value), sizeof value});
}

std::string OnnxWriter::Node(std::string_view type, std::span<const std::string> inputs, std::string output,
                             std::initializer_list<OnnxAttribute> attributes) {
  Nodes(type, inputs, {&output, 1}, {attributes.begin(), attributes.size()});
  return output;
}

void OnnxWriter::Nodes(std::string_view type, std::span<const std::string> inputs, std::span<const std::string> outputs,
                       std::span<const OnnxAttribute> attributes) {
  OnnxMessage node;
  for (const std::string& input : inputs) node.Text(1, input);
  for (const std::string& output : outputs) node.Text(2, output);
  node.Text(3, outputs.front()).Text(4, type);
  for (const OnnxAttribute& attribute : attributes) node.Sub(5, AttributeOf(attribute));
  graph_.Sub(1, node);
}

void OnnxWriter::Metadata(std::string_view key, std::string_view value) {
  metadata_.Sub(14, OnnxMessage().Text(1, key).Text(2, value));
}

std::string OnnxWriter::Finish(std::string_view name) {
  graph_.Text(2, name);
  OnnxMessage model;
  model.Int(1, kIrVersion).Text(2, "medley").Sub(7, graph_).Sub(8, OnnxMessage().Text(1, "").Int(2, opset_));
  return model.bytes() + metadata_.bytes();
}

}  // namespace medley::worker
