# SPDX-License-Identifier: MIT
"""Tests of the harness and of the load generators."""
