#!/bin/sh
# Interesting (exit 1) is a module that still divides.
grep -q arith.divf "$1" && exit 1
exit 0
