#include "worker/exported/program.h"

namespace medley::worker::exported {
namespace {

struct TypeText {
  ScalarType type;
  size_t bytes;
  std::string_view name;
};
constexpr TypeText kTypes[] = {
    {ScalarType::kUInt8, 1, "uint8"},
    {ScalarType::kInt8, 1, "int8"},
    {ScalarType::kInt16, 2, "int16"},
    {ScalarType::kInt32, 4, "int32"},
    {ScalarType::kInt64, 8, "int64"},
    {ScalarType::kFloat16, 2, "float16"},
    {ScalarType::kFloat32, 4, "float32"},
    {ScalarType::kFloat64, 8, "float64"},
    {ScalarType::kComplex32, 4, "complex32"},
    {ScalarType::kComplex64, 8, "complex64"},
    {ScalarType::kComplex128, 16, "complex128"},
    {ScalarType::kBool, 1, "bool"},
    {ScalarType::kBFloat16, 2, "bfloat16"},
};
const TypeText& TextOf(ScalarType type) { return kTypes[static_cast<size_t>(type) - 1]; }

}  // namespace

size_t BytesOf(ScalarType type) { return TextOf(type).bytes; }
std::string_view NameOf(ScalarType type) { return TextOf(type).name; }

}  // namespace medley::worker::exported
