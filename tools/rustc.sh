#!/bin/sh
# rustc for the crates of the workspace. A program of tests is compiled without optimisation, in a sixth of the time: what
# it links of other crates is optimised. Cargo has no profile that holds for programs of tests alone.
for argument; do
    if [ "$argument" = --test ]; then
        exec "$@" -C opt-level=0
    fi
done
exec "$@"
