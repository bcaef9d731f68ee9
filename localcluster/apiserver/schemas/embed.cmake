# cmake -DIN=builtin.json -DOUT=builtin_schemas.cc -P embed.cmake: the file as a function that returns it.
# One raw string literal a line of input: compilers bound the length of one literal.
set(text "#include <string_view>\nnamespace medley::kube::apiserver {\nstd::string_view BuiltinSchemasText();\n")
string(APPEND text "std::string_view BuiltinSchemasText() {\n  static constexpr char kText[] =\n")
file(READ ${IN} content)
string(REPLACE "\n" ")json\"\nR\"json(" content "${content}")
string(APPEND text "R\"json(${content})json\";\n  return {kText, sizeof(kText) - 1};\n}\n}  // namespace medley::kube::apiserver\n")
file(WRITE ${OUT} "${text}")
