#!/usr/bin/env bash
# Runs docjax.main as N processes on the CPUs of this machine, joined as on a cluster.
#
#   launch/local.sh [--dry-run] N --config=configs/NAME.py --workdir=DIR ...
#
# Process 0 writes to the terminal. The lines of every other process go to standard error
# with the number of the process. All processes receive SIGTERM, SIGINT and SIGHUP. When
# a process fails, the launcher stops all others. The exit code is 0, or the code of the
# first process that failed: 1 failed, 2 a mistake in the command or the data, 3 a loss
# that is not finite, 75 SIGTERM or 130 Ctrl-C stopped the run with everything saved (run the
# same command again).
#
# Environment: DEVICES  simulated devices of each process (1)
#              PYTHON   the Python to run (.venv/bin/python, else python3)
#              GRACE    seconds from the first failure until all processes are killed (30)
#
# For the GPUs of one machine use python -m docjax.main: one process drives all of them.

set -uo pipefail

dry='' stopping='' code=0
pids=() readers=()

main() {
  case ${1-} in
    --help | -h) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" && exit ;;
    --dry-run) dry=1 && shift ;;
  esac
  count=${1-}
  [[ $count =~ ^[1-9][0-9]*$ ]] || usage "N is ${count:-missing}: give a number above 0"
  shift
  find_python
  find_port
  for signal in HUP INT TERM; do
    # shellcheck disable=SC2064 # expands to the signal of this iteration
    trap "forward $signal" "$signal"
  done
  set -m # a process group for each process: signals arrive once, through `forward`
  for ((number = 0; number < count; number++)); do
    start "$@"
  done
  set +m
  [[ ! $stopping ]] || forward "$stopping"
  [[ $dry ]] || wait_for_all
  exit "$code"
}

usage() {
  echo "launch/local.sh: $1; see launch/local.sh --help" >&2
  exit 2
}

find_python() {
  python=${PYTHON-}
  [[ $python || ! -x .venv/bin/python ]] || python=.venv/bin/python
  python=${python:-python3}
}

# Below the port range of outgoing connections, so that no connection takes the port
# before process 0 listens on it.
find_port() {
  port=$((20000 + RANDOM % 12000))
  while (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; do
    port=$((20000 + RANDOM % 12000))
  done
}

start() {
  local command=(
    env JAX_PLATFORMS=cpu "JAX_NUM_CPU_DEVICES=${DEVICES:-1}"
    "$python" -m docjax.main "$@" "--coordinator=127.0.0.1:$port"
    "--processes=$count" "--process=$number"
  )
  if [[ $dry ]]; then
    printf '%q ' "${command[@]}" && echo '&'
  elif ((number == 0)); then
    "${command[@]}" < /dev/null &
    pids[number]=$!
  else
    exec 3> >(label "$number")
    readers+=("$!")
    "${command[@]}" < /dev/null >&3 2>&1 3>&- &
    pids[number]=$!
    exec 3>&-
  fi
}

label() {
  trap '' HUP INT TERM # `label` ends when its process has ended
  while IFS= read -r line || [[ $line ]]; do
    printf '[%s] %s\n' "$1" "$line" >&2
  done
}

forward() {
  stopping=$1
  for number in "${!pids[@]}"; do
    kill -s "$1" "${pids[number]}" 2> /dev/null
  done
}

wait_for_all() {
  while ((${#pids[@]})); do
    for number in "${!pids[@]}"; do
      kill -0 "${pids[number]}" 2> /dev/null || reap
    done
    if ((code && SECONDS >= deadline)); then
      for pid in "${pids[@]}"; do
        kill -s KILL -- "-$pid" 2> /dev/null
      done
    fi
    sleep 0.1
  done
  ((count == 1)) || wait "${readers[@]}"
}

reap() {
  wait "${pids[number]}" 2> /dev/null
  local ended=$?
  kill -s KILL -- "-${pids[number]}" 2> /dev/null # the children that it left behind
  unset "pids[number]"
  ((ended && !code)) || return
  code=$ended
  deadline=$((SECONDS + ${GRACE:-30}))
  echo "launch/local.sh: process $number ended with exit code $code" >&2
  [[ $stopping ]] || forward TERM
}

main "$@"
