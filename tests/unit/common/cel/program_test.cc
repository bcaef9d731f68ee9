// Expressions and their values. What an expression gives in Kubernetes is the truth: the errors are its words.
#include "common/cel/program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/cel/duration.h"

namespace medley::cel {
namespace {

using testing::HasSubstr;

// For a value, as CEL would write it.
std::string Show(const Value& value) {
  if (value.is_error()) return "error: " + *value.error().message;
  switch (value.kind()) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return *value.As<bool>() ? "true" : "false";
    case Kind::kInt:
      return fmt::format("{}", *value.As<int64_t>());
    case Kind::kUint:
      return fmt::format("{}u", *value.As<uint64_t>());
    case Kind::kDouble:
      return fmt::format("{}f", *value.As<double>());
    case Kind::kString:
      return "'" + std::string(value.text()) + "'";
    case Kind::kDuration:
      return FormatDuration(value.As<Value::Duration>()->nanoseconds);
    case Kind::kType:
      return std::string(TypeName(*value.As<Kind>()));
    case Kind::kList: {
      std::string text = "[";
      for (size_t i = 0; i < value.size(); ++i) text += (i > 0 ? ", " : "") + Show(value.Item(i));
      return text + "]";
    }
    default:
      return std::string(TypeName(value.kind()));
  }
}

constexpr char kSelf[] = R"({"n": 3, "d": 2, "s": "häuser", "list": [1, 2, 3], "names": ["a", "b"], "flag": true,
  "map": {"x.y": "1", "k": "2"}, "o": {"inner": {"deep": 7}}, "a-b": 1, "namespace": "ns", "null": null,
  "mixed": [1, "two"], "time": "1h30m"})";

std::string ValueOf(const std::string& text, const std::string& self = kSelf, uint64_t units = kCallBudget) {
  const auto program = Program::Compile(text, {{"self", nullptr}, {"oldSelf", nullptr}}, Kind::kDyn);
  if (!program.ok()) return "none: " + base::Message(program.status());
  const Json json = Json::parse(self);
  const Json copy = json;
  const std::vector<Value> values = {Value::Read(json, nullptr), Value::Read(copy, nullptr)};
  Budget budget(units);
  return Show(program->Evaluate(values, budget));
}

struct Case {
  const char* text;
  const char* value;
};

TEST(CelTest, OperatorsAndTheirOrder) {
  const Case cases[] = {
      {"1 + 2 * 3", "7"},
      {"(1 + 2) * 3", "9"},
      {"-7 / 2", "-3"},
      {"-7 % 2", "-1"},
      {"7.0 / 2.0", "3.5f"},
      {"1u + 2u", "3u"},
      {"0x1F", "31"},
      {"1e3", "1000f"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"9223372036854775807 + 1", "error: integer overflow"},
      {"-(-9223372036854775808)", "error: integer overflow"},
      {"1 / 0", "error: division by zero"},
      {"1 % 0", "error: modulus by zero"},
      {"1u - 2u", "error: unsigned integer overflow"},
      {"'a' + 'b'", "'ab'"},
      {"[1] + [2]", "[1, 2]"},
      {"!true || true", "true"},
      {"!!true", "true"},
      {"1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3", "true"},
      {"true ? 1 : 2", "1"},
      {"false ? 1 : true ? 2 : 3", "2"},
      {"1 == 1 ? 'x' : 'y'", "'x'"},
      {"'a' < 'b'", "true"},
      {"2 in [1, 2]", "true"},
      {"'k' in self.map", "true"},
      {"'z' in self.map", "false"},
      {"1 in self.mixed && 'two' in self.mixed && !(2 in self.mixed)", "true"},
      {"[1, 'a'] == [1, 'a']", "true"},
      {"{'a': 1} == {'a': 1}", "true"},
      {"{'a': 1}.a + {'a': 1}['a']", "2"},
      {"null == null", "true"},
      {"dyn(1) == dyn('1')", "false"},
      {"dyn(1) == dyn(1.0)", "true"},
      {"1 // a comment\n + 1", "2"},
  };
  for (const Case& each : cases) EXPECT_EQ(ValueOf(each.text), each.value) << each.text;
}

TEST(CelTest, FieldsAndIndices) {
  const Case cases[] = {
      {"self.o.inner.deep", "7"},
      {"self['n']", "3"},
      {"self.list[2]", "3"},
      {"self.list[3]", "error: index out of bounds: 3"},
      {"self.list[-1]", "error: index out of bounds: -1"},
      {"self.map['x.y']", "'1'"},
      {"has(self.o.inner) && !has(self.o.outer)", "true"},
      {"has(self.missing.field)", "error: no such key: missing"},
      {"self.missing", "error: no such key: missing"},
      {"self.n.x", "error: no such overload"},
      {"size(self)", "13"},
      {"self == oldSelf && self.list == oldSelf.list", "true"},
      {"type(self.n) == int && type(self.s) == string", "true"},
  };
  for (const Case& each : cases) EXPECT_EQ(ValueOf(each.text), each.value) << each.text;
}

TEST(CelTest, AnErrorIsHiddenWhereTheOtherOperandDecides) {
  EXPECT_EQ(ValueOf("self.missing == 1 || true"), "true");
  EXPECT_EQ(ValueOf("true || self.missing == 1"), "true");
  EXPECT_EQ(ValueOf("self.missing == 1 && false"), "false");
  EXPECT_EQ(ValueOf("self.missing == 1 || false"), "error: no such key: missing");
  EXPECT_EQ(ValueOf("[1, 2].exists(x, x == 2 || self.missing == x)"), "true");
  EXPECT_EQ(ValueOf("[1, 2].all(x, x == 1 && self.missing == x)"), "false");
  EXPECT_EQ(ValueOf("1 || true"), "none: expected a bool, found int");
  EXPECT_EQ(ValueOf("self.n || true"), "true");
  EXPECT_EQ(ValueOf("self.n || false"), "error: no such overload");
}

TEST(CelTest, Macros) {
  const Case cases[] = {
      {"self.list.all(x, x > 0)", "true"},
      {"self.list.exists(x, x > 2)", "true"},
      {"self.list.exists_one(x, x > 2)", "true"},
      {"self.list.exists_one(x, x > 1)", "false"},
      {"[].all(x, false)", "true"},
      {"[].exists(x, true)", "false"},
      {"self.list.filter(x, x > 1)", "[2, 3]"},
      {"self.list.map(x, x * 2)", "[2, 4, 6]"},
      {"self.list.map(x, x > 1, x * 2)", "[4, 6]"},
      {"self.map.exists(k, k == 'x.y')", "true"},
      {"self.map.all(k, self.map[k] != '')", "true"},
      {"self.list.all(x, self.list.exists(y, y == x))", "true"},
      {"self.list.map(x, self.list.map(x, x + 1).size() + x)", "[4, 5, 6]"},
      {"1.all(x, true)", "none: a macro needs a list or a map"},
      {"self.n.all(x, true)", "error: no such overload"},
  };
  for (const Case& each : cases) EXPECT_EQ(ValueOf(each.text), each.value) << each.text;
}

TEST(CelTest, Functions) {
  const Case cases[] = {
      {"size(self.s)", "6"},
      {"self.s.size()", "6"},
      {"self.s.startsWith('hä') && self.s.endsWith('er') && self.s.contains('us')", "true"},
      {"self.s.matches('^h.*r$')", "true"},
      {"matches(self.s, self.s)", "true"},
      {"self.s.matches(self.s + '(')", "error: error parsing regexp: missing ): häuser("},
      {"self.s.substring(1)", "'äuser'"},
      {"self.s.substring(1, 3)", "'äu'"},
      {"self.s.substring(7)", "error: index out of range: 7"},
      {"self.s.substring(3, 1)", "error: invalid substring range. start: 3, end: 1"},
      {"self.s.charAt(1)", "'ä'"},
      {"self.s.indexOf('u')", "2"},
      {"self.s.lastIndexOf('e')", "4"},
      {"'a,b,,c'.split(',')", "['a', 'b', '', 'c']"},
      {"'a,b,c'.split(',', 2)", "['a', 'b,c']"},
      {"'äb'.split('')", "['ä', 'b']"},
      {"['a', 'b'].join('-')", "'a-b'"},
      {"'aXbX'.replace('X', '--')", "'a--b--'"},
      {"'aXbX'.replace('X', '', 1)", "'abX'"},
      {"' a '.trim() + 'B'.lowerAscii() + 'c'.upperAscii()", "'abC'"},
      {"'abc 123'.find('[0-9]+')", "'123'"},
      {"int('12') + int(3.9) + int(4u)", "19"},
      {"int('x')", "error: type conversion error from 'string' to 'int'"},
      {"double('1.5') + double(2)", "3.5f"},
      {"double('')", "error: type conversion error from 'string' to 'double'"},
      {"string(1) + string(1.5) + string(true)", "'11.5true'"},
      {"string(1000000.0)", "'1e+06'"},
      {"bool('true')", "true"},
      {"uint(-1)", "error: unsigned integer overflow"},
      {"duration(self.time) == duration('90m')", "true"},
      {"duration('1h').getMinutes()", "60"},
      {"duration('x')", "error: type conversion error from 'string' to 'google.protobuf.Duration'"},
      {"duration('2600000h')", "error: type conversion error from 'string' to 'google.protobuf.Duration'"},
      {"string(duration('1.5s'))", "'1.5s'"},
      {"timestamp('2024-01-01T00:00:00Z') + duration('1h') > timestamp('2024-01-01T00:00:00Z')", "true"},
      {"quantity('1Ki').isGreaterThan(quantity('1k'))", "true"},
      {"quantity('500m').compareTo(quantity('0.5'))", "0"},
      {"isQuantity('x')", "false"},
      {"[3, 1, 2].min() + [3, 1, 2].max() + [3, 1, 2].sum()", "10"},
      {"[1, 2].isSorted() && !['b', 'a'].isSorted()", "true"},
      {"[].min()", "error: min called on empty list"},
      {R"('\x41\u00e4\101\n\'' + r'\n' + """a"b""")",
       "'A\xC3\xA4"
       "A\n'\\na\"b'"},
  };
  for (const Case& each : cases) EXPECT_EQ(ValueOf(each.text), each.value) << each.text;
}

TEST(CelTest, SaysWhereAnExpressionIsWrong) {
  const Case cases[] = {
      {"", "none: character 1: the expression ends too early"},
      {"1 +", "none: character 4: the expression ends too early"},
      {"selv.x", "none: character 1: undeclared reference to 'selv'"},
      {"self.foo()", "none: character 11: undeclared reference to 'foo', or a wrong number of arguments"},
      {"size()", "none: character 7: undeclared reference to 'size', or a wrong number of arguments"},
      {"has(self)", "none: character 10: invalid argument to has() macro"},
      {"self.x 1", "none: character 8: unexpected '1'"},
      {"'abc", "none: character 5: a string without an end"},
      {"self.s.matches('(')", "none: character 20: invalid matches argument: missing ): ("},
      {"9223372036854775808", "none: character 20: invalid int literal"},
      {"1 + 'a'", "none: found no matching overload for an operator applied to '(int, string)'"},
      {"1 == 'a'", "none: found no matching overload for a comparison applied to '(int, string)'"},
      {"#", "none: character 1: a character that no expression has"},
  };
  for (const Case& each : cases) EXPECT_EQ(ValueOf(each.text), each.value) << each.text;
}

TypePtr SelfType() {
  auto type = std::make_shared<Type>();
  type->kind = Kind::kObject;
  type->fields["d"] = {"d", Simple(Kind::kDouble)};
  type->fields["a__dash__b"] = {"a-b", Simple(Kind::kInt)};
  type->fields["__namespace__"] = {"namespace", Simple(Kind::kString)};
  type->fields["list"] = {"list", ListOf(Simple(Kind::kDouble))};
  return type;
}

TEST(CelTest, TypesOfTheSchemaDecideHowJsonReads) {
  const TypePtr type = SelfType();
  const Json json = Json::parse(kSelf);
  const auto run = [&](const std::string& text, Kind result = Kind::kBool) {
    const auto program = Program::Compile(text, {{"self", type}}, result);
    if (!program.ok()) return "none: " + base::Message(program.status());
    Budget budget(kCallBudget);
    const std::vector<Value> values = {Value::Read(json, type.get())};
    return Show(program->Evaluate(values, budget));
  };
  EXPECT_EQ(run("self.d / 4.0 == 0.5"), "true");
  EXPECT_EQ(run("self.list.all(x, x / 2.0 > 0.0)"), "true");
  EXPECT_EQ(run("self.a__dash__b == 1 && self.__namespace__ == 'ns'"), "true");
  EXPECT_EQ(run("self.n == 3"), "none: undefined field 'n'");
  EXPECT_EQ(run("self.d == 1"), "none: found no matching overload for a comparison applied to '(double, int)'");
  EXPECT_EQ(run("self.d > 1"), "true");
  EXPECT_EQ(run("self.d"), "none: must evaluate to a bool, evaluates to a double");
  EXPECT_EQ(run("self.d.x == 1"), "none: type 'double' does not support field selection");
}

TEST(CelTest, EscapesTheNamesOfProperties) {
  EXPECT_EQ(EscapeName("plain"), "plain");
  EXPECT_EQ(EscapeName("a.b-c/d"), "a__dot__b__dash__c__slash__d");
  EXPECT_EQ(EscapeName("a__b"), "a__underscores__b");
  EXPECT_EQ(EscapeName("namespace"), "__namespace__");
  EXPECT_EQ(EscapeName("1a"), "");
  EXPECT_EQ(EscapeName("a b"), "");
}

TEST(CelTest, ListsOfKeyedObjectsAndSetsCompareWithoutTheirOrder) {
  auto type = std::make_shared<Type>();
  type->kind = Kind::kList;
  const Json one = Json::parse(R"([{"k": 1, "v": 2}, {"k": 2, "v": 3}])");
  const Json two = Json::parse(R"([{"k": 2, "v": 3}, {"k": 1, "v": 2}])");
  const Json other = Json::parse(R"([{"k": 2, "v": 3}, {"k": 1, "v": 4}])");
  const auto equal = [&](const Json& a, const Json& b) {
    Budget budget(1000);
    return Equal(Value::Read(a, type.get()), Value::Read(b, type.get()), budget);
  };
  EXPECT_FALSE(equal(one, two));
  type->order = Type::Order::kKeyed;
  type->keys = {"k"};
  EXPECT_TRUE(equal(one, two));
  EXPECT_FALSE(equal(one, other));
  type->order = Type::Order::kSet;
  EXPECT_TRUE(equal(Json::parse("[1, 2]"), Json::parse("[2, 1]")));
  EXPECT_FALSE(equal(Json::parse("[1, 2]"), Json::parse("[2, 3]")));
}

TEST(CelTest, EveryEvaluationEnds) {
  constexpr uint64_t kUnits = 100'000;
  Json big = Json::object();
  for (int i = 0; i < 5000; ++i) big["list"].push_back(i);
  const std::string self = big.dump();
  const std::string spent = "error: operation cancelled: actual cost limit exceeded";
  EXPECT_EQ(ValueOf("self.list.all(x, self.list.all(y, x + y >= 0))", self, kUnits), spent);
  EXPECT_EQ(ValueOf("self.list.all(x, self.list.all(y, x + y >= 0)) || true", self, kUnits), spent);
  EXPECT_EQ(ValueOf("self.list.all(x, self.list == [x])", self, kUnits), "false");
  EXPECT_EQ(ValueOf("self.list.exists(x, self == oldSelf && false)", self, kUnits), spent);
  EXPECT_EQ(
      ValueOf("self.list.map(x, self.list.map(y, 'abcdefghijklmnopqrstuvwxyz' + string(x))).size() == 1", self, kUnits),
      spent);
  EXPECT_EQ(ValueOf("self.list.all(x, x >= 0)", self, kUnits), "true");
  EXPECT_EQ(ValueOf("1 + 1", "{}", 1), "2");
  EXPECT_EQ(ValueOf("1 + 1", "{}", 0), spent);
}

TEST(CelTest, DeepAndLongExpressionsAreRefused) {
  EXPECT_THAT(ValueOf(std::string(1000, '(') + "1" + std::string(1000, ')')), HasSubstr("nested too deep"));
  std::string sum = "1";
  for (int i = 0; i < 1000; ++i) sum += " + 1";
  EXPECT_THAT(ValueOf(sum), HasSubstr("nested too deep"));
  std::string path = "self";
  for (int i = 0; i < 1000; ++i) path += ".a";
  EXPECT_THAT(ValueOf(path), HasSubstr("nested too deep"));
  std::string any = "false";
  for (int i = 0; i < 1000; ++i) any += " || false";
  EXPECT_EQ(ValueOf(any), "false");
  EXPECT_EQ(ValueOf(std::string(1001, '!') + "true"), "false");
  EXPECT_THAT(ValueOf("'" + std::string(200'000, 'a') + "'"), HasSubstr("longer than 100000 bytes"));
}

TEST(CelTest, DurationsAreThoseOfGo) {
  int64_t ns = 0;
  EXPECT_TRUE(ParseDuration("1h2m3.5s4ms5us6ns", ns));
  EXPECT_EQ(ns, 3'723'504'005'006);
  EXPECT_TRUE(ParseDuration("-1.5h", ns) && ns == -5'400'000'000'000);
  EXPECT_TRUE(ParseDuration("0", ns) && ns == 0);
  EXPECT_TRUE(ParseDuration(".5s", ns) && ns == 500'000'000);
  EXPECT_TRUE(ParseDuration("2562047h47m16.854775807s", ns) && ns == INT64_MAX);
  for (const char* bad : {"", "1", "h", "1d", ".s", "1h ", " 1h", "2562047h47m16.854775808s", "1e3s", "+", "--1s"}) {
    EXPECT_FALSE(ParseDuration(bad, ns)) << bad;
  }
}

}  // namespace
}  // namespace medley::cel
