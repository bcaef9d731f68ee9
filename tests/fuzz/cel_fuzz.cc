// The fuzz target of expressions: the first line is an expression, the rest the JSON that it is evaluated over.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/status.h"
#include "common/cel/program.h"
#include "common/document/parse.h"

namespace medley::cel {
namespace {

constexpr document::Limits kLimits{.bytes = 1 << 16, .depth = 32, .values = 10'000};

void FuzzExpression(std::string_view input) {
  const size_t line = input.find('\n');
  if (line == std::string_view::npos) return;
  const auto json = document::Parse(input.substr(line + 1), kLimits);
  const auto program = Program::Compile(input.substr(0, line), {{"self", nullptr}, {"oldSelf", nullptr}}, Kind::kBool);
  if (!json.ok() || !program.ok()) return;
  Budget budget(100'000);
  const std::vector<Value> values = {Value::Read(*json, nullptr), Value::Read(*json, nullptr)};
  const Value once = program->Evaluate(values, budget);
  Budget again(100'000);
  const Value twice = program->Evaluate(values, again);
  MEDLEY_CHECK(budget.left() == again.left() && once.is_error() == twice.is_error(),
               "an expression has two values: it must depend on its variables alone");
}

}  // namespace
}  // namespace medley::cel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::cel::FuzzExpression({reinterpret_cast<const char*>(data), size});
  return 0;
}
