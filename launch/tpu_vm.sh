#!/usr/bin/env bash
# Trains on a Cloud TPU VM or on a pod slice: copies the committed files to every worker,
# installs them and runs docjax.main, one process a worker.
#
#   launch/tpu_vm.sh [--dry-run] NAME ZONE --config=configs/NAME.py --workdir=DIR ...
#
# All workers have mounted the file system of DIR (Filestore, Cloud Storage FUSE). The
# workers need Python 3.11 with venv, or a newer Python named by PYTHON. They get
# XLA_FLAGS, LIBTPU_INIT_ARGS and JAX_COMPILATION_CACHE_DIR where these are set here.
#
# This stops the run with everything saved (exit code 75); to resume, run the same
# launch command again:
#   gcloud compute tpus tpu-vm ssh NAME --zone=ZONE --worker=all \
#     --command='pkill -TERM -f [d]ocjax.main'
# Other exit codes: 0 done, 1 failed, 2 a mistake in the command or the data, 3 a loss
# that is not finite.

set -euo pipefail

case ${1-} in
  --help | -h) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" && exit ;;
  --dry-run) dry=1 && shift ;;
esac
if (($# < 2)) || [[ $1$2 == *=* ]]; then
  echo "launch/tpu_vm.sh: NAME and ZONE are missing; see launch/tpu_vm.sh --help" >&2
  exit 2
fi
name=$1 zone=$2
shift 2

run() {
  if [[ ${dry-} ]]; then
    printf '%q ' "$@" && echo
  else
    "$@"
  fi
}

settings=
for setting in XLA_FLAGS LIBTPU_INIT_ARGS JAX_COMPILATION_CACHE_DIR; do
  [[ ${!setting-} ]] && settings+=$(printf '%s=%q ' "$setting" "${!setting}")
done
archive=${TMPDIR:-/tmp}/docjax.tar.gz
remote="set -e; rm -rf docjax/docjax; tar -xzf docjax.tar.gz; cd docjax
[ -x .venv/bin/python ] || ${PYTHON:-python3.11} -m venv .venv
.venv/bin/python -m pip install -q -c constraints.txt -e '.[tpu]'
exec ${settings:+env $settings}.venv/bin/python -m docjax.main --distributed$(printf ' %q' "$@")"

cd "$(dirname "${BASH_SOURCE[0]}")/.."
run git archive --format=tar.gz --prefix=docjax/ --output="$archive" HEAD
run gcloud compute tpus tpu-vm scp "$archive" "$name:" --zone="$zone" --worker=all
run gcloud compute tpus tpu-vm ssh "$name" --zone="$zone" --worker=all \
  --command="$remote"
