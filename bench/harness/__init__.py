# SPDX-License-Identifier: MIT
"""The measuring harness of gori: see bench/README.md for the method."""
