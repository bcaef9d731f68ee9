# All targets are made by these functions. Each folder is one library, named by the folder's path with underscores.
#
#   medley_library(NAME common_base SRCS a.cc [ALONE a.cc] [BATCH 8] HDRS a.h DEPS public... PRIVATE_DEPS heavy...)
#   medley_binary(NAME medley-worker SRCS main.cc DEPS ...)
#   medley_test(NAME base_test SRCS a_test.cc DEPS ... [BINARIES program...] [ENV NAME=VALUE...] [LABELS ...]
#               [TIMEOUT seconds] [PARTS 2])  # PARTS: its cases run as so many tests of ctest, side by side
#   medley_test(NAME base_test SRCS a_test.cc PROGRAM base_tests ...)  # without DEPS and BINARIES: those of the program
#   medley_test_program(NAME base_tests DEPS ... [BINARIES ...])  # after its tests
#   medley_plugin(NAME medley-columns SRCS ... DEPS ...)  # bin/libNAME.so, which a program loads when it needs it
#   medley_real_api_test(NAME base_test [TIMEOUT s] [WITHOUT cases])
#
# A wing is a folder that is configured and not part of the default target: it has a target of its own, and sets MEDLEY_WING
# to that name. The target builds the wing's programs and tests, and its tests have the name as a label.

# The sources of a target are compiled in batches, so that headers are parsed once a batch: this takes a third of the
# processor time of single files (docs/adr/0011). Names in anonymous namespaces must therefore be unique in a folder.
# -DMEDLEY_UNITY=OFF compiles single files (for clangd).
#
# CMake's own UNITY_BUILD writes absolute paths into a batch, so that no other checkout could use what ccache keeps.
option(MEDLEY_UNITY "Compile the sources of a target in batches" ON)
set(MEDLEY_UNITY_BATCH 20)
set(MEDLEY_TEST_BATCH 12)  # of the tests of a program: a change of one of them compiles that many

# Puts the files to compile into OUT: as few batches of SOURCES of this folder as there can be with at most SIZE files each, all of
# about one size, and those of ALONE, or with a path, as they are.
function(medley_batches OUT NAME SOURCES ALONE SIZE)
  set(files)
  set(batched)
  foreach(source IN LISTS SOURCES)
    if(NOT MEDLEY_UNITY OR source IN_LIST ALONE OR source MATCHES "/" OR NOT source MATCHES "\\.cc$")
      list(APPEND files ${source})
    else()
      list(APPEND batched ${source})
    endif()
  endforeach()
  list(LENGTH batched count)
  if(count EQUAL 1)
    list(APPEND files ${batched})
    set(batched)
  endif()
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  math(EXPR left "(${count} + ${SIZE} - 1) / ${SIZE}")
  set(index 0)
  while(batched)
    list(LENGTH batched count)
    math(EXPR length "(${count} + ${left} - 1) / ${left}")
    math(EXPR left "${left} - 1")
    list(SUBLIST batched 0 ${length} batch)
    list(REMOVE_ITEM batched ${batch})
    list(TRANSFORM batch PREPEND "#include \"${folder}/")
    list(TRANSFORM batch APPEND "\"\n")
    string(JOIN "" text ${batch})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/batch_${NAME}_${index}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND files ${file})
    math(EXPR index "${index} + 1")
  endwhile()
  set(${OUT} ${files} PARENT_SCOPE)
endfunction()

# Folders without hot loops set MEDLEY_OPTIMIZE to -O1, which saves a fifth of their compile time. It holds for folders in
# them too, and only for the build type Release.
function(medley_optimize NAME)
  if(MEDLEY_OPTIMIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${NAME} PRIVATE ${MEDLEY_OPTIMIZE})
  endif()
endfunction()

function(medley_library)
  cmake_parse_arguments(A "" "NAME;BATCH" "SRCS;ALONE;HDRS;DEPS;PRIVATE_DEPS" ${ARGN})
  if(NOT A_BATCH)
    set(A_BATCH ${MEDLEY_UNITY_BATCH})
  endif()
  if(A_SRCS)
    medley_batches(files ${A_NAME} "${A_SRCS}" "${A_ALONE}" ${A_BATCH})
    add_library(medley_${A_NAME} STATIC ${files} ${A_HDRS})
    target_include_directories(medley_${A_NAME} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(medley_${A_NAME} PUBLIC ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS} medley_warnings)
    medley_use_precompiled(medley_${A_NAME} programs)
    medley_optimize(medley_${A_NAME})
  else()
    add_library(medley_${A_NAME} INTERFACE)
    target_include_directories(medley_${A_NAME} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(medley_${A_NAME} INTERFACE ${A_DEPS} ${A_PRIVATE_DEPS})
  endif()
  add_library(medley::${A_NAME} ALIAS medley_${A_NAME})
endfunction()

function(medley_binary)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  medley_batches(files ${A_NAME} "${A_SRCS}" "" ${MEDLEY_UNITY_BATCH})
  add_executable(${A_NAME} ${files})
  target_include_directories(${A_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} medley_warnings)
  medley_use_precompiled(${A_NAME} programs)
  medley_optimize(${A_NAME})
  if(MEDLEY_WING)
    add_dependencies(${MEDLEY_WING} ${A_NAME})
  else()
    set_property(GLOBAL APPEND PROPERTY MEDLEY_PROGRAMS ${A_NAME})
  endif()
endfunction()

# Shows nothing but what the sources mark, and needs nothing of the program that loads it.
function(medley_plugin)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  medley_batches(files ${A_NAME} "${A_SRCS}" "" ${MEDLEY_UNITY_BATCH})
  add_library(${A_NAME} MODULE ${files})
  set_target_properties(${A_NAME} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${A_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} medley_warnings)
  medley_optimize(${A_NAME})
endfunction()

# The program of medley_test and medley_test_program.
function(medley_add_test_program)
  cmake_parse_arguments(A "" "NAME;BATCH" "SRCS;DEPS;BINARIES" ${ARGN})
  medley_batches(files ${A_NAME} "${A_SRCS}" "" ${A_BATCH})
  add_executable(${A_NAME} ${files})
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${A_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} medley_warnings GTest::gmock GTest::gtest GTest::gtest_main)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")  # the tests only: the code under test keeps -O2
    target_compile_options(${A_NAME} PRIVATE -O1)
  endif()
  medley_use_precompiled(${A_NAME} tests)
  if(A_BINARIES)  # programs that the test starts
    if("medley-worker" IN_LIST A_BINARIES)
      list(APPEND A_BINARIES medley-worker-torch medley-agent)  # which it becomes for models from PyTorch and for programs
    endif()
    add_dependencies(${A_NAME} ${A_BINARIES})
  endif()
  if(MEDLEY_WING)
    add_dependencies(${MEDLEY_WING} ${A_NAME})
  endif()
endfunction()

# One program for the tests of this folder that name it. Each of them is a link to it, by whose name the program knows
# which cases to run (tests/program), so each test is a process of its own.
function(medley_test_program)
  cmake_parse_arguments(A "" "NAME" "DEPS;BINARIES" ${ARGN})
  get_property(tests DIRECTORY PROPERTY MEDLEY_TESTS_OF_${A_NAME})
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(sources)
  set(table)
  set(links)
  foreach(test IN LISTS tests)
    get_property(files DIRECTORY PROPERTY MEDLEY_SOURCES_OF_${test})
    list(APPEND sources ${files})
    list(TRANSFORM files PREPEND "\"${folder}/")
    list(TRANSFORM files APPEND "\"")
    list(JOIN files ", " files)
    string(APPEND table "    {\"${test}\", {${files}}},\n")
    list(APPEND links COMMAND ${CMAKE_COMMAND} -E create_symlink ${A_NAME} ${CMAKE_BINARY_DIR}/tests/${test})
    add_custom_target(${test} DEPENDS ${A_NAME})
  endforeach()
  list(REMOVE_DUPLICATES sources)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/tests_of_${A_NAME}.cc)
  set(text "#include \"tests/program/choose.h\"\n\nnamespace medley::test_program {\n\n")
  string(APPEND text "const std::vector<NamedTest>& TestsOfThisProgram() {\n  static const std::vector<NamedTest> tests = {\n")
  string(APPEND text "${table}  };\n  return tests;\n}\n\n}  // namespace medley::test_program\n")
  file(CONFIGURE OUTPUT ${generated} CONTENT "${text}" @ONLY)
  medley_add_test_program(NAME ${A_NAME} SRCS ${sources} ${generated} BATCH ${MEDLEY_TEST_BATCH}
    DEPS medley::test_program_main ${A_DEPS} BINARIES ${A_BINARIES})
  add_custom_command(TARGET ${A_NAME} POST_BUILD ${links} VERBATIM)
endfunction()

function(medley_test)
  cmake_parse_arguments(A "" "NAME;TIMEOUT;PARTS;PROGRAM" "SRCS;DEPS;ENV;LABELS;BINARIES" ${ARGN})
  if(A_PROGRAM)
    set_property(DIRECTORY APPEND PROPERTY MEDLEY_TESTS_OF_${A_PROGRAM} ${A_NAME})
    set_property(DIRECTORY PROPERTY MEDLEY_SOURCES_OF_${A_NAME} ${A_SRCS})
    set(command ${CMAKE_BINARY_DIR}/tests/${A_NAME})
  else()
    medley_add_test_program(NAME ${A_NAME} SRCS ${A_SRCS} BATCH ${MEDLEY_UNITY_BATCH} DEPS ${A_DEPS} BINARIES ${A_BINARIES})
    set(command ${A_NAME})
  endif()
  if(MEDLEY_WING)
    list(APPEND A_LABELS ${MEDLEY_WING})
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  if(NOT A_PARTS)
    set(A_PARTS 1)
  endif()
  set(tests)
  foreach(part RANGE 1 ${A_PARTS})
    if(part EQUAL 1)
      set(test ${A_NAME})
    else()
      set(test ${A_NAME}_part${part})
    endif()
    add_test(NAME ${test} COMMAND ${command})
    list(APPEND tests ${test})
  endforeach()
  set(patience 1)
  if(MEDLEY_SANITIZE)
    # Programs with sanitizers are several times slower, so timeouts are longer (common/base/testing/patience.h).
    set(patience 3)
    set(log "log_path=${CMAKE_BINARY_DIR}/sanitizer-reports/report")
    set(tsan "TSAN_OPTIONS=${log}:ignore_noninstrumented_modules=1:halt_on_error=1")
    string(APPEND tsan ":suppressions=${CMAKE_SOURCE_DIR}/tests/sanitizers/tsan.supp")
    list(APPEND A_ENV "MEDLEY_SANITIZE=${MEDLEY_SANITIZE}" "ASAN_OPTIONS=${log}" "UBSAN_OPTIONS=${log}:print_stacktrace=1"
      "${tsan}")
    set_tests_properties(${tests} PROPERTIES FIXTURES_REQUIRED sanitizer)
  endif()
  math(EXPR A_TIMEOUT "${A_TIMEOUT} * ${patience}")
  set(index 0)
  foreach(test ${tests})
    set_tests_properties(${test} PROPERTIES
      TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${A_PARTS};GTEST_SHARD_INDEX=${index};MEDLEY_SOURCE_DIR=${CMAKE_SOURCE_DIR};MEDLEY_BIN_DIR=${CMAKE_BINARY_DIR}/bin;OMP_NUM_THREADS=1;OPENBLAS_NUM_THREADS=1;MEDLEY_TEST_PATIENCE=${patience};MEDLEY_CACHE=off;${A_ENV}")
    math(EXPR index "${index} + 1")
  endforeach()
endfunction()

# The cases of a medley_test that take a real API server (kube::ServerKind::kReal), as another test, NAME_real. The
# fixture real_api (tests/cluster/CMakeLists.txt) starts the server; the test is skipped where it cannot. WITHOUT: patterns of
# cases that another test runs against a real server.
function(medley_real_api_test)
  cmake_parse_arguments(A "" "NAME;TIMEOUT;WITHOUT" "" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)
  endif()
  if(A_WITHOUT)
    set(A_WITHOUT "-${A_WITHOUT}")
  endif()
  set(fixtures real_api)
  if(MEDLEY_SANITIZE)
    list(APPEND fixtures sanitizer)
    math(EXPR A_TIMEOUT "${A_TIMEOUT} * 3")
  endif()
  get_test_property(${A_NAME} ENVIRONMENT environment)
  list(APPEND environment "MEDLEY_CLUSTER_STATE=${CMAKE_BINARY_DIR}/clusters/api")
  add_test(NAME ${A_NAME}_real
    COMMAND ${CMAKE_SOURCE_DIR}/tests/cluster/real-api run $<TARGET_FILE:${A_NAME}> --gtest_filter=*/Real${A_WITHOUT})
  # All of them use the same server, so two of them at once could disturb each other's pools and nodes.
  set_tests_properties(${A_NAME}_real PROPERTIES LABELS "integration;real-api" SKIP_RETURN_CODE 77
    TIMEOUT ${A_TIMEOUT}
    FIXTURES_REQUIRED "${fixtures}" RESOURCE_LOCK real_api FAIL_REGULAR_EXPRESSION "Running 0 tests"
    ENVIRONMENT "${environment}")
endfunction()
