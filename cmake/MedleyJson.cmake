# A copy of nlohmann/json.hpp without its literals ("..."_json and "..."_json_pointer), which no file needs. They are inline
# functions, so GCC instantiates the parser and the serializer for them in every object that includes the header, also
# through a precompiled one: 0.5 s of an object's compile time. The rest of the header is unchanged, and where the text to
# leave out is not found (another version of the library), the library's own header is used. docs/adr/0008-precompiled-headers.md.
find_path(NLOHMANN_INCLUDE nlohmann/json.hpp REQUIRED)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${NLOHMANN_INCLUDE}/nlohmann/json.hpp)

# Takes the text from the first FROM up to the next TO out of the variable VAR; FOUND says whether there was one.
function(medley_cut VAR FOUND FROM TO)
  set(text "${${VAR}}")
  string(FIND "${text}" "${FROM}" begin)
  set(${FOUND} FALSE PARENT_SCOPE)
  if(begin GREATER -1)
    string(SUBSTRING "${text}" 0 ${begin} before)
    string(SUBSTRING "${text}" ${begin} -1 rest)
    string(FIND "${rest}" "${TO}" end)
    if(end GREATER -1)
      string(SUBSTRING "${rest}" ${end} -1 after)
      set(${VAR} "${before}${after}" PARENT_SCOPE)
      set(${FOUND} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()

file(READ ${NLOHMANN_INCLUDE}/nlohmann/json.hpp json_header)
medley_cut(json_header without_literals "inline namespace literals" "NLOHMANN_JSON_NAMESPACE_END")
medley_cut(json_header without_usings "using nlohmann::literals" "#endif")
set(copy ${CMAKE_BINARY_DIR}/headers/nlohmann/json.hpp)
if(without_literals AND without_usings)
  file(CONFIGURE OUTPUT ${copy} CONTENT "${json_header}" @ONLY)
else()
  message(STATUS "nlohmann/json.hpp has no literals where they were: used as it is, so objects take longer to compile")
  file(REMOVE ${copy})
endif()
include_directories(BEFORE SYSTEM ${CMAKE_BINARY_DIR}/headers)
unset(json_header)
