/* SPDX-License-Identifier: MIT */
/*
 * The version of the library.  Read by CMake, so the text is the only place that holds it.
 */
#ifndef GORI_VERSION_H
#define GORI_VERSION_H

#define GORI_VERSION_TEXT "0.1.0"

#endif
