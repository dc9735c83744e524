#!/bin/sh
# Counts epochs, goes on after a restart, and writes its answer: a program for a machine that has sh alone.
#   ./train.sh [EPOCHS] [SECONDS_OF_AN_EPOCH]
set -eu
trap '' PIPE # nobody may read the reports any more
epochs=${1:-20} seconds=${2:-1}
state=${TRAIND_CHECKPOINTS:-.}/epoch
done=0
if [ -s "$state" ]; then done=$(cat "$state"); fi
while [ "$done" -lt "${TRAIND_EPOCHS:-$epochs}" ]; do
  # The program should stop from the moment on that this file exists.
  if [ -n "${TRAIND_STOP_FILE:-}" ] && [ -e "$TRAIND_STOP_FILE" ]; then break; fi
  sleep "$seconds"
  done=$((done + 1))
  # A file that is renamed is whole at any moment.
  echo "$done" >"$state.part"
  mv "$state.part" "$state"
  { echo "id,value"; echo "0,$done"; } >answer.part
  mv answer.part answer.csv
  echo "epoch $done/$epochs"
  if [ -n "${TRAIND_REPORT_FD:-}" ]; then
    # By its path, because >& of a plain sh knows one digit alone; a report that fails is no error.
    echo "{\"epoch\": $done, \"epochs\": $epochs, \"metric\": $done}" >"/dev/fd/$TRAIND_REPORT_FD" || true
  fi
done
