# The only ways to make targets. One library a folder; its name is the folder's path with underscores.
#
#   medley_library(NAME common_base SRCS a.cc HDRS a.h DEPS public... PRIVATE_DEPS heavy...)
#   medley_binary(NAME medley-worker SRCS main.cc DEPS ...)
#   medley_test(NAME base_test SRCS a_test.cc DEPS ... [DATA_ENV NAME=VALUE...] [LABELS ...] [TIMEOUT s])

function(medley_library)
  cmake_parse_arguments(A "" "NAME" "SRCS;HDRS;DEPS;PRIVATE_DEPS" ${ARGN})
  if(A_SRCS)
    add_library(medley_${A_NAME} STATIC ${A_SRCS} ${A_HDRS})
    target_include_directories(medley_${A_NAME} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(medley_${A_NAME} PUBLIC ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS} medley_warnings)
  else()
    add_library(medley_${A_NAME} INTERFACE)
    target_include_directories(medley_${A_NAME} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(medley_${A_NAME} INTERFACE ${A_DEPS} ${A_PRIVATE_DEPS})
  endif()
  add_library(medley::${A_NAME} ALIAS medley_${A_NAME})
endfunction()

function(medley_binary)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  target_include_directories(${A_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} medley_warnings)
endfunction()

function(medley_test)
  cmake_parse_arguments(A "" "NAME;TIMEOUT" "SRCS;DEPS;ENV;LABELS;BINARIES" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${A_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} medley_warnings GTest::gmock GTest::gtest GTest::gtest_main)
  if(A_BINARIES)  # programs that the test starts
    add_dependencies(${A_NAME} ${A_BINARIES})
  endif()
  add_test(NAME ${A_NAME} COMMAND ${A_NAME})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  set_tests_properties(${A_NAME} PROPERTIES
    TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}"
    ENVIRONMENT "MEDLEY_SOURCE_DIR=${CMAKE_SOURCE_DIR};MEDLEY_BIN_DIR=${CMAKE_BINARY_DIR}/bin;OMP_NUM_THREADS=1;OPENBLAS_NUM_THREADS=1;TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1;${A_ENV}")
endfunction()
