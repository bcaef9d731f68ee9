#include "common/cel/parser.h"

#include <absl/strings/numbers.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "common/base/status.h"
#include "common/cel/functions.h"
#include "common/cel/lexer.h"

namespace medley::cel {
namespace {

using Op = Expression::Op;

struct Binary {
  std::string_view symbol;
  Op op;
};
constexpr std::array kRelations = {
    Binary{"==", Op::kEqual},  Binary{"!=", Op::kNotEqual},     Binary{"<", Op::kLess}, Binary{"<=", Op::kLessEqual},
    Binary{">", Op::kGreater}, Binary{">=", Op::kGreaterEqual}, Binary{"in", Op::kIn}};
constexpr std::array kSums = {Binary{"+", Op::kAdd}, Binary{"-", Op::kSubtract}};
constexpr std::array kProducts = {Binary{"*", Op::kMultiply}, Binary{"/", Op::kDivide}, Binary{"%", Op::kModulo}};
constexpr std::array<std::pair<std::string_view, Op>, 6> kMacros = {{{"all", Op::kAll},
                                                                     {"exists", Op::kExists},
                                                                     {"exists_one", Op::kExistsOne},
                                                                     {"existsOne", Op::kExistsOne},
                                                                     {"filter", Op::kFilter},
                                                                     {"map", Op::kTransform}}};
constexpr std::array<std::pair<std::string_view, Kind>, 10> kTypes = {{{"bool", Kind::kBool},
                                                                       {"int", Kind::kInt},
                                                                       {"uint", Kind::kUint},
                                                                       {"double", Kind::kDouble},
                                                                       {"string", Kind::kString},
                                                                       {"bytes", Kind::kBytes},
                                                                       {"list", Kind::kList},
                                                                       {"map", Kind::kMap},
                                                                       {"null_type", Kind::kNull},
                                                                       {"type", Kind::kType}}};

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::span<const Variable> variables) : tokens_(std::move(tokens)) {
    for (const Variable& variable : variables) scope_.push_back({variable.name, scope_.size()});
    parsed_.slots = variables.size();
    parsed_.uses.resize(variables.size());
  }

  absl::StatusOr<Parsed> Run() {
    parsed_.root = Whole();
    if (status_.ok() && Peek().kind != Token::Kind::kEnd) Fail("unexpected '" + Peek().text + "'");
    if (!status_.ok()) return status_;
    return std::move(parsed_);
  }

 private:
  struct Name {
    std::string name;
    size_t slot;
  };

  const Token& Peek() const { return tokens_[at_]; }
  bool IsSymbol(std::string_view symbol) const { return Peek().kind == Token::Kind::kSymbol && Peek().text == symbol; }
  bool Take(std::string_view symbol) {
    if (!IsSymbol(symbol) && !(symbol == "in" && Peek().kind == Token::Kind::kName && Peek().text == "in")) {
      return false;
    }
    ++at_;
    return true;
  }
  void Expect(std::string_view symbol) {
    if (status_.ok() && !Take(symbol)) {
      Fail("expected '" + std::string(symbol) + "'" +
           (Peek().kind == Token::Kind::kEnd ? "" : ", found '" + Peek().text + "'"));
    }
  }
  // The first failure counts; all loops end with it.
  void Fail(const std::string& what) {
    if (status_.ok()) status_ = base::InvalidArgument("character {}: {}", Peek().position + 1, what);
  }

  ExpressionPtr Make(Op op, std::vector<ExpressionPtr> args) {
    auto made = std::make_unique<Expression>();
    made->op = op;
    for (const ExpressionPtr& arg : args) made->depth = std::max(made->depth, arg->depth + 1);
    made->args = std::move(args);
    if (made->depth > kDeepestExpression) Fail("the expression is nested too deep");
    return made;
  }
  ExpressionPtr Make(Op op, ExpressionPtr only) {
    std::vector<ExpressionPtr> args;
    args.push_back(std::move(only));
    return Make(op, std::move(args));
  }
  ExpressionPtr Make(Op op, ExpressionPtr left, ExpressionPtr right) {
    std::vector<ExpressionPtr> args;
    args.push_back(std::move(left));
    args.push_back(std::move(right));
    return Make(op, std::move(args));
  }
  ExpressionPtr Literal(Value value) {
    auto made = std::make_unique<Expression>();
    made->literal = std::move(value);
    return made;
  }

  ExpressionPtr Whole() {
    if (++nested_ > kDeepestExpression) Fail("the expression is nested too deep");
    if (!status_.ok()) return Literal({});
    ExpressionPtr condition = Chain("||", Op::kOr);
    if (status_.ok() && Take("?")) {
      std::vector<ExpressionPtr> args;
      args.push_back(std::move(condition));
      args.push_back(Chain("||", Op::kOr));
      Expect(":");
      args.push_back(Whole());
      condition = Make(Op::kConditional, std::move(args));
    }
    --nested_;
    return condition;
  }

  // a || b || c is one node, so that a long chain is not deep.
  ExpressionPtr Chain(std::string_view symbol, Op op) {
    const auto next = [&] { return op == Op::kOr ? Chain("&&", Op::kAnd) : Relation(); };
    ExpressionPtr first = next();
    if (!status_.ok() || !IsSymbol(symbol)) return first;
    std::vector<ExpressionPtr> args;
    args.push_back(std::move(first));
    while (status_.ok() && Take(symbol)) args.push_back(next());
    return Make(op, std::move(args));
  }
  ExpressionPtr Relation() {
    return Left(kRelations, [this] { return Sum(); });
  }
  ExpressionPtr Sum() {
    return Left(kSums, [this] { return Product(); });
  }
  ExpressionPtr Product() {
    return Left(kProducts, [this] { return Unary(); });
  }
  template <size_t N, typename Next>
  ExpressionPtr Left(const std::array<Binary, N>& operators, const Next& next) {
    ExpressionPtr left = next();
    while (status_.ok()) {
      const auto* found = std::ranges::find_if(operators, [&](const Binary& each) { return Take(each.symbol); });
      if (found == operators.end()) break;
      left = Make(found->op, std::move(left), next());
    }
    return left;
  }

  ExpressionPtr Unary() {
    int nots = 0;
    while (Take("!")) ++nots;
    if (nots > 0) {
      ExpressionPtr operand = Member();
      if (nots % 2 == 0) operand = Make(Op::kNot, std::move(operand));
      return Make(Op::kNot, std::move(operand));
    }
    int minuses = 0;
    while (IsSymbol("-")) {
      ++at_;
      ++minuses;
    }
    if (minuses == 1 && (Peek().kind == Token::Kind::kInt || Peek().kind == Token::Kind::kDouble)) {
      negative_ = true;
      return Member();
    }
    if (minuses == 0) return Member();
    ExpressionPtr operand = Member();
    if (minuses % 2 == 0) operand = Make(Op::kNegate, std::move(operand));
    return Make(Op::kNegate, std::move(operand));
  }

  ExpressionPtr Member() {
    ExpressionPtr value = Primary();
    while (status_.ok()) {
      if (Take(".")) {
        if (Peek().kind != Token::Kind::kName) {
          Fail("expected a name after '.'");
          break;
        }
        std::string name = tokens_[at_++].text;
        if (Take("(")) {
          value = MemberCall(std::move(value), name);
        } else {
          value = Make(Op::kSelect, std::move(value));
          value->name = std::move(name);
        }
      } else if (Take("[")) {
        value = Make(Op::kIndex, std::move(value), Whole());
        Expect("]");
      } else {
        break;
      }
    }
    return value;
  }

  // The parenthesis is taken.
  ExpressionPtr MemberCall(ExpressionPtr target, const std::string& name) {
    for (const auto& [macro, op] : kMacros) {
      // As in CEL, map() without a name in front of a comma is a function, which there is none of.
      if (macro == name && Peek().kind == Token::Kind::kName && tokens_[at_ + 1].text == ",") {
        return Macro(std::move(target), op);
      }
    }
    std::vector<ExpressionPtr> args;
    args.push_back(std::move(target));
    Arguments(args);
    return Call(name, true, std::move(args));
  }

  ExpressionPtr Macro(ExpressionPtr range, Op op) {
    const std::string variable = tokens_[at_++].text;
    Expect(",");
    scope_.push_back({variable, parsed_.slots});
    const size_t slot = parsed_.slots++;
    std::vector<ExpressionPtr> args;
    args.push_back(std::move(range));
    args.push_back(Whole());
    if (op == Op::kTransform && Take(",")) args.push_back(Whole());
    Expect(")");
    scope_.pop_back();
    ExpressionPtr made = Make(op, std::move(args));
    made->slot = slot;
    return made;
  }

  // After the opening parenthesis.
  void Arguments(std::vector<ExpressionPtr>& args) {
    while (status_.ok() && !IsSymbol(")")) {
      args.push_back(Whole());
      if (!Take(",")) break;
    }
    Expect(")");
  }

  ExpressionPtr Call(const std::string& name, bool member, std::vector<ExpressionPtr> args) {
    const Function* function = FindFunction(name, member, args.size() - (member ? 1 : 0));
    if (function == nullptr) {
      Fail("undeclared reference to '" + name + "', or a wrong number of arguments");
      return Literal({});
    }
    ExpressionPtr made = Make(Op::kCall, std::move(args));
    made->function = function;
    const Expression& last = *made->args.back();
    if (name == "matches" && last.op == Op::kLiteral && last.literal.kind() == Kind::kString) {
      const std::string pattern(last.literal.text());
      made->pattern = std::make_shared<const RE2>(pattern, RE2::Quiet);
      if (!made->pattern->ok()) Fail("invalid matches argument: " + made->pattern->error());
    }
    return made;
  }

  ExpressionPtr Has() {
    ExpressionPtr field = Whole();
    Expect(")");
    if (status_.ok() && field->op != Op::kSelect) Fail("invalid argument to has() macro");
    field->op = Op::kHas;
    return field;
  }

  ExpressionPtr Primary() {
    const Token token = Peek();
    if (token.kind != Token::Kind::kEnd) ++at_;
    switch (token.kind) {
      case Token::Kind::kEnd:
        Fail("the expression ends too early");
        return Literal({});
      case Token::Kind::kInt:
      case Token::Kind::kUint:
      case Token::Kind::kDouble:
        return Number(token);
      case Token::Kind::kString:
        return Literal(Value::OwnedText(token.text));
      case Token::Kind::kBytes:
        return Literal(Value(Value::Bytes{std::make_shared<const std::string>(token.text)}));
      case Token::Kind::kName:
        return Word(token.text);
      case Token::Kind::kSymbol:
        break;
    }
    if (token.text == "(") {
      ExpressionPtr inner = Whole();
      Expect(")");
      return inner;
    }
    std::vector<ExpressionPtr> args;
    if (token.text == "[") {
      while (status_.ok() && !IsSymbol("]")) {
        args.push_back(Whole());
        if (!Take(",")) break;
      }
      Expect("]");
      return List(std::move(args));
    }
    if (token.text == "{") {
      while (status_.ok() && !IsSymbol("}")) {
        args.push_back(Whole());
        Expect(":");
        args.push_back(Whole());
        if (!Take(",")) break;
      }
      Expect("}");
      return Make(Op::kMap, std::move(args));
    }
    --at_;
    Fail("unexpected '" + token.text + "'");
    return Literal({});
  }

  // A list of literals is a literal.
  ExpressionPtr List(std::vector<ExpressionPtr> args) {
    const bool constant = std::ranges::all_of(args, [](const auto& each) { return each->op == Op::kLiteral; });
    if (!constant) return Make(Op::kList, std::move(args));
    auto items = std::make_shared<std::vector<Value>>();
    for (const ExpressionPtr& each : args) items->push_back(each->literal);
    return Literal(Value(Value::List(std::move(items))));
  }

  ExpressionPtr Word(const std::string& word) {
    if (word == "true" || word == "false") return Literal(Value(word == "true"));
    if (word == "null") return Literal({});
    if (Take("(")) {
      if (word == "has") return Has();
      std::vector<ExpressionPtr> args;
      Arguments(args);
      return Call(word, false, std::move(args));
    }
    for (auto name = scope_.rbegin(); name != scope_.rend(); ++name) {
      if (name->name != word) continue;
      if (name->slot < parsed_.uses.size()) parsed_.uses[name->slot] = true;
      auto made = std::make_unique<Expression>();
      made->op = Op::kVariable;
      made->slot = name->slot;
      made->name = word;
      return made;
    }
    for (const auto& [name, kind] : kTypes) {
      if (name == word) return Literal(Value(kind));
    }
    --at_;
    Fail("undeclared reference to '" + word + "'");
    return Literal({});
  }

  ExpressionPtr Number(const Token& token) {
    const bool negative = std::exchange(negative_, false);
    if (token.kind == Token::Kind::kDouble) {
      double value = 0;
      if (!absl::SimpleAtod(token.text, &value) || !std::isfinite(value)) Fail("invalid double literal");
      return Literal(Value(negative ? -value : value));
    }
    uint64_t value = 0;
    const bool hex = token.text.starts_with("0x") || token.text.starts_with("0X");
    const bool read = hex ? absl::SimpleHexAtoi(token.text, &value) : absl::SimpleAtoi(token.text, &value);
    if (!read) Fail("invalid int literal");
    if (token.kind == Token::Kind::kUint) return Literal(Value(value));
    constexpr auto kMostInt = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (value > kMostInt + (negative ? 1 : 0)) Fail("invalid int literal");
    return Literal(Value(static_cast<int64_t>(negative ? 0 - value : value)));
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nested_ = 0;
  bool negative_ = false;  // the number that follows
  std::vector<Name> scope_;
  Parsed parsed_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Parsed> Parse(std::string_view text, std::span<const Variable> variables) {
  if (text.size() > kLongestExpression) return base::InvalidArgument("longer than {} bytes", kLongestExpression);
  MEDLEY_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return Parser(std::move(tokens), variables).Run();
}

}  // namespace medley::cel
