# Headers that nearly every file includes, compiled once for programs and once for tests: a third of a cold build.
#
# Every file still includes what it uses: builds with clang (fuzzers) have no precompiled headers. GNU only, for ccache's
# sake. Torch has none (docs/adr/0005): one file a folder includes it.

set(precompiled_common <absl/status/status.h> <absl/status/statusor.h> <fmt/format.h> <nlohmann/json.hpp> <algorithm>
    <functional> <map> <memory> <optional> <string> <thread> <vector>)

# What uses a precompiled header must be compiled with the flags that it was compiled with: -Winvalid-pch tells.
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
  # What ccache takes for the precompiled header, which holds its checkout's path and so never is the same twice. Headers
  # of the system that change are seen all the same: they are named as dependencies of each file.
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
