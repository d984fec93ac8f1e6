# SPDX-License-Identifier: Apache-2.0
# Tests of the public C API between thread ranks and process ranks of one host.
set(here ${CMAKE_CURRENT_LIST_DIR})
set(engine ${here}/call.cc ${here}/watchdog.cc)

# What the calls compute.
hocket_test(collectives_test ${engine} ${here}/matrix_test.cc ${here}/vector_forms_test.cc ${here}/numbers_test.cc
            ${here}/placement_test.cc ${here}/single_rank_test.cc ${here}/deterministic_test.cc ${here}/custom_ops_test.cc
            LABELS unit TIMEOUT 300)
# How calls may be made: groups, streams, threads, handles, errors.
hocket_test(collectives_api_test ${engine} ${here}/group_test.cc ${here}/stream_test.cc ${here}/usage_test.cc
            ${here}/bad_input_test.cc ${here}/large_counts_test.cc LABELS unit TIMEOUT 300)
# Ranks that are processes; forks, so no test here makes a communicator in the test process itself.
hocket_test(collectives_process_test ${engine} ${here}/process_test.cc LABELS unit TIMEOUT 300)
# Minutes, or gigabytes.
hocket_test(collectives_long_test ${engine} ${here}/long_test.cc LABELS long TIMEOUT 1800)

# The public header, alone, in the languages of its users.
add_library(public_header_c99 OBJECT ${here}/public_header_c99.c)
add_library(public_header_cxx17 OBJECT ${here}/public_header_cxx17.cc)
foreach(header_user public_header_c99 public_header_cxx17)
  target_include_directories(${header_user} PRIVATE ${PROJECT_SOURCE_DIR}/include)
endforeach()
# These options instead of the project's, some of which are not for C.
set_target_properties(public_header_c99 PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
                                                   COMPILE_OPTIONS "-Wall;-Wextra;-pedantic;-Werror")
set_target_properties(public_header_cxx17 PROPERTIES CXX_STANDARD 17 COMPILE_OPTIONS "-Wall;-Wextra;-pedantic;-Werror")
