#!/bin/sh
# Runs a command that cannot outlive the process that started it.
#   guarded.sh RUN_FOLDER COMMAND [ARGUMENT...]
# Descriptor 3 is a pipe whose other end only the owner holds. A line on it means that the owner tidies up itself; an end of
# file without one means that the owner died, by kill -9 too: then the command is killed and the run folder removed.
# The watcher keeps the process group alive, so the pid that it kills cannot have been given to another process.
run=$1
shift
( read -r _ <&3 || { kill -9 $$; sleep 1; rm -rf "$run"; } ) >/dev/null 2>&1 &
exec "$@" 3<&-
