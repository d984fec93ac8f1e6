# SPDX-License-Identifier: Apache-2.0
# hocket_test(NAME sources... [LABELS ...] [TIMEOUT s]): a GoogleTest binary over the library's objects.
function(hocket_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "LABELS;LIBRARIES" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(HOCKET_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 5")  # instrumented code is many times slower
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/transports
                                             ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE hocket_objects GTest::gtest GTest::gmock GTest::gtest_main ${arg_LIBRARIES})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()
