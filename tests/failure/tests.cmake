# SPDX-License-Identifier: Apache-2.0
# One binary. Its tests run twice: those whose suite is named Long* apart, as they take minutes. They measure time and load,
# so nothing else runs beside them.
hocket_test(failure_test ${sources} LABELS unit TIMEOUT 240)
set_tests_properties(failure_test PROPERTIES ENVIRONMENT "GTEST_FILTER=-Long*" RUN_SERIAL TRUE)
add_test(NAME failure_long_test COMMAND failure_test)
set_tests_properties(failure_long_test PROPERTIES ENVIRONMENT "GTEST_FILTER=Long*" LABELS long TIMEOUT 900 RUN_SERIAL TRUE)
