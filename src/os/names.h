/* SPDX-License-Identifier: MIT */
/*
 * The headers in which a system keeps its socket addresses and their text; addr.c is written in
 * what they have in common.
 */
#ifndef GI_OS_NAMES_H
#define GI_OS_NAMES_H

#ifdef _WIN32
#include <winsock2.h>

#include <afunix.h>
#include <iphlpapi.h>
#include <ws2tcpip.h>

/* The headers define it in terms of a driver's header. */
#undef IF_NAMESIZE
#define IF_NAMESIZE 257
#else
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#endif

#endif
