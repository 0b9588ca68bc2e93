#!/usr/bin/env bash
# Counts the files of the bundle.
set -euo pipefail
find . -type f | wc --lines
