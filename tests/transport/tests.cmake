# SPDX-License-Identifier: Apache-2.0
# The slot protocol, the transports, the executor over them, and the small parts around them.
hocket_test(transport_test ${CMAKE_CURRENT_LIST_DIR}/transport_suite.cc LABELS unit TIMEOUT 300)
