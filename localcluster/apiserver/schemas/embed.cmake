# cmake -DIN=builtin.json -DOUT=builtin_schemas.cc -P embed.cmake: makes a function that returns the file's content.
# Each line of the input is its own raw string literal, because compilers limit the length of one literal.
set(text "#include <string_view>\nnamespace medley::localcluster::apiserver {\nstd::string_view BuiltinSchemasText();\n")
string(APPEND text "std::string_view BuiltinSchemasText() {\n  static constexpr char kText[] =\n")
file(READ ${IN} content)
string(REPLACE "\n" ")json\"\nR\"json(" content "${content}")
string(APPEND text "R\"json(${content})json\";\n  return {kText, sizeof(kText) - 1};\n}\n}  // namespace medley::localcluster::apiserver\n")
file(WRITE ${OUT} "${text}")
