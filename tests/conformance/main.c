/* SPDX-License-Identifier: MIT */
/*
 * The conformance suite as a program; ctest runs it once for each engine (GORI_TEST_ENGINE).
 */
#include "lib/test.h"

GT_MAIN()
