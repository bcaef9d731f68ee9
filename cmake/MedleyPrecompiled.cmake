# Precompiles headers that nearly every file includes, once for programs and once for tests. This saves a third of a
# cold build.
#
# Every file must still include what it uses, because builds with clang (fuzzers) have no precompiled headers. GCC only,
# because of ccache. Torch's headers are not precompiled: few folders include them. See
# docs/adr/0008-precompiled-headers.md.

set(precompiled_common <absl/status/status.h> <absl/status/statusor.h> <fmt/format.h> <nlohmann/json.hpp> <algorithm>
    <functional> <map> <memory> <optional> <string> <thread> <vector>)

# A target must be compiled with the same flags as the precompiled header that it uses; -Winvalid-pch reports if not.
function(medley_compile_alike NAME)
  target_compile_options(${NAME} PRIVATE -fPIC -pthread -fpch-preprocess)
  target_link_libraries(${NAME} PRIVATE fmt::fmt medley_warnings)
endfunction()

function(medley_precompile KIND)
  cmake_parse_arguments(A "" "" "HEADERS;OPTIONS;DEPS" ${ARGN})
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  set(name medley_precompiled_${KIND})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled_${KIND}.cc CONTENT "// Carries a precompiled header.\n")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled_${KIND}.cc)
  target_compile_options(${name} PRIVATE ${A_OPTIONS})
  target_link_libraries(${name} PRIVATE ${A_DEPS})
  medley_compile_alike(${name})
  target_precompile_headers(${name} PRIVATE ${precompiled_common} ${A_HEADERS})
  # ccache hashes this file instead of the precompiled header, which contains the path of its checkout and so differs
  # between checkouts. Changes of system headers are still detected: each object depends on them.
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.gch.sum CONTENT
    "${KIND} ${precompiled_common} ${A_HEADERS} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${MEDLEY_SANITIZE}\n")
endfunction()

function(medley_use_precompiled NAME KIND)
  if(TARGET medley_precompiled_${KIND})
    medley_compile_alike(${NAME})
    target_precompile_headers(${NAME} REUSE_FROM medley_precompiled_${KIND})
  endif()
endfunction()

medley_precompile(programs)
medley_precompile(tests
  HEADERS <gmock/gmock.h> <gtest/gtest.h> <filesystem>
  OPTIONS $<$<CONFIG:Release>:-O1>
  DEPS GTest::gmock GTest::gtest)
