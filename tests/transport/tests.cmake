# SPDX-License-Identifier: Apache-2.0
# The slot protocol, the transports, the executor over them, and the small parts around them.
hocket_test(transport_test ${CMAKE_CURRENT_LIST_DIR}/transport_suite.cc ${CMAKE_CURRENT_LIST_DIR}/fault_test.cc
            LABELS unit TIMEOUT 300)
hocket_test(executor_test ${CMAKE_CURRENT_LIST_DIR}/executor_test.cc LABELS unit TIMEOUT 600)
file(GLOB base_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/base/*_test.cc)
hocket_test(base_test ${base_tests} LABELS unit TIMEOUT 300)
file(GLOB comm_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/comm/*_test.cc)
hocket_test(comm_test ${comm_tests} LABELS unit TIMEOUT 120)
hocket_test(exec_test ${PROJECT_SOURCE_DIR}/src/exec/blocks_test.cc ${PROJECT_SOURCE_DIR}/src/exec/cpu_executor_test.cc
            LABELS unit TIMEOUT 120)
