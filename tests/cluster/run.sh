#!/bin/bash
# A cluster in network namespaces: traind with TLS and tokens in one, Workers in two others, a client
# in a fourth, all on a bridge. Each Worker has a state folder of its own, and sees neither traind's nor
# the data: files travel. At the end a third Worker shares the folder.
#   tests/cluster/run.sh [FOLDER OF THE PROGRAMS]    without a folder it builds them
# Prints "N passed, N failed", or one line that says why it was skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
if [ "${1:-}" != --inside ]; then
  if ! unshare --user --map-root-user --net --mount --uts --pid --fork true 2>/dev/null; then
    echo "skipped: network namespaces are not permitted here"
    exit 0
  fi
  if [ $# -eq 0 ]; then
    bazel build --noshow_progress --ui_event_filters=-info //server:traind //client:trainctl \
      //worker:trainworker //worker:trainprep //worker:trainrank //worker:trainprog || exit 1
  fi
  exec unshare --user --map-root-user --net --mount --uts --pid --fork --mount-proc \
    --kill-child "$0" --inside "$@"
fi
shift
if [ $# -ge 1 ]; then
  traind=$1/traind trainctl=$1/trainctl trainworker=$1/trainworker
else
  traind=$root/bazel-bin/server/traind trainctl=$root/bazel-bin/client/trainctl
  trainworker=$root/bazel-bin/worker/trainworker
fi

work=$(mktemp -d)
end() { rm -rf "$work"; }
trap end EXIT
mount -t tmpfs none /run 2>/dev/null && mkdir -p /run/netns
passed=0
failed=0

# check NAME COMMAND...: the command succeeds.
check() {
  local name=$1
  shift
  if "$@" >"$work/out" 2>&1; then
    passed=$((passed + 1))
    echo "ok      $name"
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    sed 's/^/        /' "$work/out" | tail -5 | cut -c1-1500
  fi
}

# refused TEXT COMMAND...: the command fails, and its output has the text.
refused() {
  local text=$1
  shift
  if "$@" >"$work/refused" 2>&1; then
    echo "it was not refused"
    return 1
  fi
  grep -q -- "$text" "$work/refused" || { cat "$work/refused"; return 1; }
}

# wait_for SECONDS COMMAND...
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { "$@"; return 1; }
    sleep 0.2
  done
}

# Hosts, each with a namespace, a cable to the bridge and an address.
ip link add name hub0 type bridge && ip link set dev hub0 up
number=1
for host in lead one two three client; do
  if ! ip netns add $host 2>"$work/out"; then
    echo "skipped: network namespaces are not permitted here: $(head -1 "$work/out")"
    exit 0
  fi
  ip link add to_$host type veth peer name eth0 netns $host
  ip link set to_$host master hub0 up
  ip -n $host addr add 10.77.0.$number/24 dev eth0
  ip -n $host link set eth0 up
  ip -n $host link set lo up
  number=$((number + 1))
done
on() { ip netns exec "$@"; }
server=10.77.0.1:7070

mkdir -p "$work/data" "$work/state"
python3 - "$work/data" <<'PY'
import random, sys
random.seed(7)
for name, rows in (("train", 400), ("test", 50)):
    with open(f"{sys.argv[1]}/{name}.csv", "w") as f:
        f.write("a,b" + (",kind" if name == "train" else "") + "\n")
        for _ in range(rows):
            a, b = random.random(), random.random()
            f.write(f"{a:.4f},{b:.4f}" + ((",x" if a > b else ",y") if name == "train" else "") + "\n")
PY
cat >"$work/data/job.yaml" <<YAML
api: v1
name: cluster
task: {type: classification, metric: accuracy}
data: {train: $work/data/train.csv, test: $work/data/test.csv, target: kind, folds: 3, seed: 7}
model: {mlp: {hidden: [16]}}
train: {epochs: 20, batch: 32}
budget: {time: 40s}
output: predictions.csv
YAML
tls=$work/tls
state=$work/state
check "init-tls makes a CA and certificates" "$traind" init-tls "$tls" --host 10.77.0.1
check "private keys are for their owner only" \
  test -z "$(find "$tls" -name '*.key' -not -perm 0600)"
for entry in ann:user bob:user eve:viewer w1:worker w2:worker w3:worker; do
  check "a token of ${entry#*:}" "$traind" token add "${entry%:*}" --state "$state" \
    --role "${entry#*:}" --expires 1d --out "$work/${entry%:*}.token"
done
check "an address beyond loopback without TLS is refused" refused "--tls" \
  on lead "$traind" --state "$state" --listen $server --data-root "$work"

on lead "$traind" --state "$state" --listen $server --tls "$tls" --data-root "$work" --allow-programs \
  >"$work/traind.log" 2>&1 &
check "traind listens with TLS" wait_for 20 grep -q "traind ready" "$work/traind.log"

# start_worker HOST TOKEN [FOLDER [SLOTS]]: a Worker is known by its host's name. With a folder of its own
# it sees neither traind's folder nor the data.
start_worker() {
  local hide="" folder=${3:-$state}
  [ "$folder" = "$state" ] || hide="mount -t tmpfs none '$state' && mount -t tmpfs none '$work/data' &&"
  ip netns exec "$1" unshare --uts --mount bash -c "hostname \$1; shift; $hide exec \"\$@\"" - "$1" \
    "$trainworker" --coordinator $server --tls "$tls" --token "$work/$2.token" --state "$folder" \
    --slots "${4:-2}" --device cpu >>"$work/$1.log" 2>&1 &
}
start_worker one w1 "$work/own1"
worker_one=$!
start_worker two w2 "$work/own2"
worker_two=$!
ctl() { on client "$trainctl" --server $server --tls "$tls" "$@"; }
attached() { [ "$(ctl --token "$work/ann.token" -o json workers | grep -c '"connected": *true')" = "$1" ]; }
check "both Workers attach" wait_for 20 attached 2

check "a call without a token is refused" refused "needs a token" ctl list
echo traind_0000 >"$work/wrong.token"
chmod 600 "$work/wrong.token"
check "a wrong token is refused" refused "does not know this token" \
  ctl --token "$work/wrong.token" list
check "a viewer may list" ctl --token "$work/eve.token" list
check "a viewer may not submit" refused "role viewer" \
  ctl --token "$work/eve.token" submit -f "$work/data/job.yaml"
check "plain text to the port of TLS is refused" refused "cannot reach" \
  on client "$trainctl" --server $server --timeout 3s list
check "a Worker's token is no client's" refused "role worker" ctl --token "$work/w1.token" list

check "a Job is submitted from another host" \
  ctl --token "$work/ann.token" submit -f "$work/data/job.yaml"
check "somebody else may not cancel it" refused "belongs to ann" \
  ctl --token "$work/bob.token" cancel cluster
check "the audit log tells of it" \
  grep -q '"caller":"bob".*"method":"CancelJob".*PERMISSION_DENIED' "$state/audit.jsonl"
ip link set to_one down
sleep 5
ip link set to_one up
check "a link that was cut for 5 s heals" wait_for 20 attached 2
job_field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
over() {
  ctl --token "$work/ann.token" -o json get cluster >"$work/job" || return 1
  python3 -c 'import json, sys
job = json.load(open(sys.argv[1]))
print(job["state"], job["end_reason"], json.dumps(job["folds"]))
trained = [fold["state"] for fold in job["folds"]] == ["DONE"] * 3
sys.exit(job["state"] != "SUCCEEDED" or not trained or job["finished_at"] > job["deadline"])' "$work/job"
}
check "the Job answers on time, with all of its folds" wait_for 45 over
check "the answer is in traind's folder" \
  grep -q "kind" "$state/jobs/$(job_field "$work/job" id)/current/predictions.csv"
check "the Workers fetched the data" \
  test "$(find "$work"/own1/inputs "$work"/own2/inputs -name train.csv 2>/dev/null | wc -l)" -ge 1

succeeded() { ctl --token "$work/ann.token" -o json get "$1" >"$work/job" &&
  grep -q '"state": *"SUCCEEDED"' "$work/job"; }

# Packets of one direction are lost: the host at the other end has an address there that nobody has.
lose() { ip -n "$1" neigh replace "$2" lladdr 02:00:00:00:00:01 dev eth0 nud permanent; }
lose_no_more() { ip -n "$1" neigh del "$2" dev eth0; }
sed 's/^name: .*/name: one_way/; s/time: 40s/time: 240s/
  s/epochs: 20, batch: 32/epochs: 100000, batch: 16, checkpoint_every: 500ms, patience: 0/' "$work/data/job.yaml" \
  >"$work/data/one_way.yaml"
# host_one nothing|something: it has trained a fold of that Job, and so much of its Attempts was lost.
host_one() {
  ctl --token "$work/ann.token" -o json get one_way >"$work/job" || return 1
  python3 -c 'import json, sys
attempts = [a for a in json.load(open(sys.argv[1]))["attempts"] if a["worker"].startswith("one")]
print(json.dumps(attempts))
lost = any((a["end_reason"] or "").endswith("WORKER_LOST") for a in attempts)
trains = any(a["first_step"] is not None for a in attempts)
sys.exit(not trains or lost != (sys.argv[2] == "something"))' "$work/job" "$1"
}
check "a Job that trains until it is told to end" \
  ctl --token "$work/ann.token" submit -f "$work/data/one_way.yaml"
check "it trains on the host, too" wait_for 30 host_one nothing
lose lead 10.77.0.2
sleep 5
lose_no_more lead 10.77.0.2
check "what traind tells the host is lost for 5 s: no Attempt is" host_one nothing
lose one 10.77.0.1
sleep 5
lose_no_more one 10.77.0.1
check "what the host tells traind is lost for 5 s: no Attempt is" host_one nothing
check "both hosts are attached" wait_for 20 attached 2
lose one 10.77.0.1
check "a host that is not heard for a lease loses its Attempts" wait_for 30 host_one something
lose_no_more one 10.77.0.1
check "it comes back when it is heard" wait_for 40 attached 2
for _ in $(seq 25); do
  ip link set to_one down
  sleep 0.2
  ip link set to_one up
  sleep 0.2
done
check "after a link that came and went for 10 s it is attached" wait_for 20 attached 2
check "the Job ends when it is told to" ctl --token "$work/ann.token" finish one_way
check "the Job with the lost packets answers" wait_for 40 succeeded one_way

# A link is cut for 30 s, twice a lease, while a Job trains: the host's folds go on elsewhere, the host comes back, and
# the Job answers on time.
sed 's/^name: .*/name: cut/; s/^data:/cache: off\ndata:/; s/time: 40s/time: 90s/
  s/epochs: 20, batch: 32/epochs: 100000, batch: 16, checkpoint_every: 500ms, patience: 0/' "$work/data/job.yaml" \
  >"$work/data/cut.yaml"
check "a Job that trains until its deadline" ctl --token "$work/ann.token" submit -f "$work/data/cut.yaml"
# The host with most folds, when checkpoints of all are at traind; the other one has a slot that is free.
busiest() {
  [ "$(find "$state"/jobs/cut-* -name 'checkpoint-*.json' 2>/dev/null | sed 's,/checkpoint-.*,,' | sort -u | wc -l)" -ge 3 ] &&
    ctl --token "$work/ann.token" -o json get cut >"$work/job" || return 1
  python3 -c 'import collections, json, sys
runs = [a for a in json.load(open(sys.argv[1]))["attempts"] if a["task"] != "prepare" and not a.get("ended_at")]
print(collections.Counter(a["worker"].split("-")[0] for a in runs).most_common(1)[0][0])
sys.exit(len(runs) < 3)' "$work/job" >"$work/busiest"
}
check "its folds train on both hosts, and have saved" wait_for 40 busiest
away=$(cat "$work/busiest")
ip link set "to_$away" down
cut_at=$SECONDS
# moved HOST JOB: waits until a fold of HOST takes its first step elsewhere, and prints the seconds since the last
# heartbeat of HOST.
moved() {
  PYTHONDONTWRITEBYTECODE=1 ip netns exec client python3 - "$trainctl" "$1" "$2" --server $server --tls "$tls" \
    --token "$work/ann.token" <<'PY'
import datetime, json, subprocess, sys, time
trainctl, host, name = sys.argv[1:4]

def ask(*words):
    return json.loads(subprocess.run([trainctl, *sys.argv[4:], "-o", "json", *words], stdout=subprocess.PIPE, check=True).stdout)

end = time.time() + 40
while time.time() < end:
    attempts = ask("get", name)["attempts"]
    now = time.time()
    lost = {a["task"]: a["id"] for a in attempts
            if a["worker"].startswith(host) and (a.get("end_reason") or "").endswith("WORKER_LOST")}
    if any(a["id"] > lost.get(a["task"], 1 << 60) and a.get("first_step") is not None for a in attempts):
        workers = ask("workers")
        workers = workers["workers"] if isinstance(workers, dict) else workers
        seen = max(datetime.datetime.fromisoformat(w["last_seen"].replace("Z", "+00:00")).timestamp()
                   for w in workers if w["hostname"] == host)
        print(f"from the last heartbeat of a lost Worker to the first step elsewhere: {now - seen:.1f} s; "
              f"a lease and 2 s are 17 s")
        sys.exit(0)
    time.sleep(0.1)
print(json.dumps(attempts))
sys.exit(1)
PY
}
check "a fold of the host that was cut off goes on elsewhere" moved "$away" cut
grep "first step elsewhere" "$work/out"
while [ $((SECONDS - cut_at)) -lt 30 ]; do sleep 0.2; done
ip link set "to_$away" up
check "after 30 s the link is back, and so is the host" wait_for 40 attached 2
on_time() {
  ctl --token "$work/ann.token" -o json get cut >"$work/job" || return 1
  python3 -c 'import json, sys
job = json.load(open(sys.argv[1]))
print(job["state"], json.dumps(job.get("predictions")), json.dumps(job["attempts"]))
sys.exit(job["state"] != "SUCCEEDED" or job["finished_at"] > job["deadline"] or len(job["predictions"]["folds"]) != 3)' "$work/job"
}
check "the Job answers on time, with a model of each fold" wait_for 90 on_time

# A gang of four ranks spans both hosts.
sed 's/^name: .*/name: gang/; s/epochs: 20, batch: 32/epochs: 10, batch: 8, collective: gloo/; s/time: 40s/time: 60s/' \
  "$work/data/job.yaml" >"$work/data/gang.yaml"
echo 'resources: {slots: 4, device: cpu}' >>"$work/data/gang.yaml"
# gang_of JOB NUMBER: it succeeded on time, and each of its folds was trained by a gang on so many hosts.
gang_of() {
  ctl --token "$work/ann.token" -o json get "$1" >"$work/job" || return 1
  python3 -c 'import json, sys
job = json.load(open(sys.argv[1]))
hosts = {1 + len(a.get("other_workers") or []) for a in job["attempts"] if a["task"] != "prepare"}
print(job["state"], hosts, json.dumps(job["attempts"]))
sys.exit(job["state"] != "SUCCEEDED" or hosts != {int(sys.argv[2])} or job["finished_at"] > job["deadline"])' \
    "$work/job" "$2"
}
losses() { ctl --token "$work/ann.token" -o json metrics "$1" -m train_loss,val_loss; }
check "a Job whose folds need four slots" ctl --token "$work/ann.token" submit -f "$work/data/gang.yaml"
check "its gangs train on two hosts" wait_for 60 gang_of gang 2
losses gang >"$work/two_hosts.json"

# A host that is cut off for longer than a lease is lost to its gang.
sed 's/^name: .*/name: split/; s/epochs: 10/epochs: 100000, checkpoint_every: 500ms, patience: 0/; s/time: 60s/time: 120s/' \
  "$work/data/gang.yaml" >"$work/data/split.yaml"
check "a gang that trains until its time is over" \
  ctl --token "$work/ann.token" submit -f "$work/data/split.yaml"
gang_saved() { find "$state"/jobs/split-* -name 'checkpoint-*.json' 2>/dev/null | grep -q .; }
check "the checkpoints of its lead reach traind" wait_for 40 gang_saved
ip link set to_two down
smaller() {
  ctl --token "$work/ann.token" -o json get split >"$work/job" || return 1
  python3 -c 'import json, sys
attempts = [a for a in json.load(open(sys.argv[1]))["attempts"] if a["task"] == "fold-0"]
print(json.dumps(attempts))
alone = [a for a in attempts if not a.get("other_workers") and (a["first_step"] or 0) > 0]
sys.exit(not alone or not all(a["worker"].startswith("one") for a in alone))' "$work/job"
}
check "two ranks on the other host go on from the checkpoint of the four" wait_for 60 smaller
ip link set to_two up
check "it ends when it is told to" ctl --token "$work/ann.token" finish split
check "the Job with the host that was cut off answers" wait_for 40 succeeded split
check "the host is back" wait_for 30 attached 2

# A host is lost: its folder with it.
sed 's/^name: .*/name: lost/; s/epochs: 20/epochs: 100000, checkpoint_every: 500ms, patience: 0/; s/time: 40s/time: 90s/' \
  "$work/data/job.yaml" >"$work/data/lost.yaml"
check "a Job that trains until its time is over" \
  ctl --token "$work/ann.token" submit -f "$work/data/lost.yaml"
both_saved() {
  [ "$(find "$state"/jobs/lost-* -name 'checkpoint-*.json' 2>/dev/null |
    sed 's,/checkpoint-.*,,' | sort -u | wc -l)" -ge 3 ]
}
check "checkpoints of its folds reach traind" wait_for 20 both_saved
kill -9 $worker_one
rm -rf "$work/own1"
resumed() {
  ctl --token "$work/ann.token" -o json get lost >"$work/job" || return 1
  python3 -c 'import json, sys
job = json.load(open(sys.argv[1]))
lost = {a["task"]: a["id"] for a in job["attempts"] if (a["end_reason"] or "").endswith("WORKER_LOST")}
on = [a for a in job["attempts"] if a["id"] > lost.get(a["task"], 1 << 60) and (a["first_step"] or 0) > 0]
print(json.dumps(job["attempts"]))
sys.exit(not lost or not on or not all(a["worker"].startswith("two") for a in on))' "$work/job"
}
check "another host goes on from the checkpoint of the lost one" wait_for 35 resumed
check "it ends when it is told to" ctl --token "$work/ann.token" finish lost
check "the Job with the lost host answers" wait_for 30 succeeded lost

# The folder of a program travels, and what it leaves comes back.
mkdir "$work/data/program" "$work/data/left" && echo 'hostname >answer.txt' >"$work/data/program/run.sh"
cat >"$work/program.yaml" <<YAML
api: v1
name: program
run: {command: [sh, run.sh], folder: $work/data/program, results: $work/data/left, expect: [answer.txt]}
budget: {time: 60s}
YAML
check "a Job that runs a program is accepted" ctl --token "$work/ann.token" submit -f "$work/program.yaml"
check "it runs on a host that does not see its folder" wait_for 30 succeeded program
check "its answer is where the user wants it" grep -qx two "$work/data/left/answer.txt"
kill $worker_two
start_worker three w3
worker_three=$!
check "a Worker that shares the folder takes its place" wait_for 20 attached 1
sed 's/^name: .*/name: again/' "$work/program.yaml" >"$work/again.yaml"
check "the same program for that one" ctl --token "$work/ann.token" submit -f "$work/again.yaml"
check "it runs there, too" wait_for 30 succeeded again
check "and its answer replaces the earlier one" grep -qx three "$work/data/left/answer.txt"

# The same gang on one host.
kill $worker_three
check "the Workers end" wait_for 20 attached 0
start_worker one w1 "$work/own3" 4
check "a Worker with four slots attaches" wait_for 20 attached 1
sed 's/^name: .*/name: alone/; s/^data:/cache: off\ndata:/' "$work/data/gang.yaml" >"$work/data/alone.yaml"
check "the same Job for one host" ctl --token "$work/ann.token" submit -f "$work/data/alone.yaml"
check "its gangs train on one host" wait_for 60 gang_of alone 1
losses alone >"$work/one_host.json"
check "the losses of both are equal" python3 -c 'import json, sys
def losses(path):
    points = json.load(open(path))["points"]
    return {(p["name"], p.get("fold", 0), p["epoch"]): p["value"] for p in points}
one, two = losses(sys.argv[1]), losses(sys.argv[2])
worst = max(abs(one[key] - two[key]) for key in one)
print(len(one), "losses differ by at most", worst)
sys.exit(len(one) < 30 or one.keys() != two.keys() or worst > 1e-6)' "$work/one_host.json" "$work/two_hosts.json"

desk=$(mktemp -d)
cp "$work/data/train.csv" "$work/data/test.csv" "$desk"
sed "s,$work/data,$desk,; s/test: .*test.csv/test: test.csv/; s/^name: .*/name: sent/; s/^data:/cache: off\ndata:/" \
  "$work/data/job.yaml" >"$desk/job.yaml"
check "files of a user's own machine are refused with advice" refused "--upload" \
  ctl --token "$work/ann.token" submit -f "$desk/job.yaml"
check "they are sent, and the Job answers" \
  ctl --token "$work/ann.token" submit -f "$desk/job.yaml" --upload --wait
check "its predictions came back" grep -q kind "$desk/predictions.csv"
PYTHONPATH=$root python3 - "$desk" <<'PY'
import json, os, sys
from tests.e2e.images import job_of, write_images
class Desk:
    data = sys.argv[1]
    def write(self, name, content):
        path = os.path.join(self.data, name)
        with open(path, "wb" if isinstance(content, bytes) else "w") as f:
            f.write(content)
        return path
write_images(Desk(), each=20, test=9)
with open(os.path.join(sys.argv[1], "images.json"), "w") as f:
    json.dump(job_of(epochs=3, name="pictures", output="pictures.csv"), f)
PY
check "a folder of images and a table of them are sent, and learnt by a Worker that sees no folder of traind's" \
  ctl --token "$work/ann.token" submit -f "$desk/images.json" --upload --wait
check "its answer names the images" grep -q "test/0.png," "$desk/pictures.csv"
check "the Worker got each image" test "$(find "$work/own3/inputs" -name '*.png' | wc -l)" = 69
check "a later file is sent and predicted there" \
  ctl --token "$work/ann.token" predict pictures --upload --data "$desk/test" --out "$desk/later.csv"
check "each of its images is answered" test "$(wc -l <"$desk/later.csv")" = 10
check "rows are answered at once by models that the Worker has, or fetched" \
  ctl --token "$work/ann.token" predict sent --rows "$work/data/test.csv"
rm -rf "$desk"
ip netns exec two unshare --uts --mount bash -c "hostname one; mount -t tmpfs none '$work/own3' && exec \"\$@\"" - \
  "$trainworker" --coordinator $server --tls "$tls" --token "$work/w2.token" --state "$work/own3" --slots 1 \
  --device cpu >"$work/thief.log" 2>&1 &
check "a Worker's id is not given to another token" \
  wait_for 20 grep "belongs to the token w1" "$work/thief.log"
check "a token is revoked" "$traind" token revoke eve --state "$state"
check "a revoked token is refused at once" refused "does not know this token" \
  ctl --token "$work/eve.token" list

kill $(jobs -p) 2>/dev/null
wait

# A coordinator that dies for good, and one that sleeps while another takes over; both on loopback.
ip link set lo up
mkdir -p "$work/bin/server"
ln -s "$traind" "$work/bin/server/traind"
TRAIND_BIN=$work/bin PYTHONPATH=$root timeout 180 python3 "$root/tests/cluster/standby_drill.py" --kills 5 \
  >"$work/drill" 2>"$work/drill.err"
# drill WHAT: an expression of the drill's summary; it holds.
drill() {
  python3 -c 'import json, sys
lines = open(sys.argv[1]).read().splitlines()
print("\n".join(lines[-3:]), open(sys.argv[2]).read()[-1000:])
of = json.loads(lines[-1])
sys.exit(not eval(sys.argv[3], {"of": of}))' "$work/drill" "$work/drill.err" "$1"
}
check "a standby takes over four times from a traind that was killed, and once from one that sleeps" \
  drill 'of["strikes"] == 5 and of["pauses"] == 1'
check "each time within 10 s" drill 'of["over_the_limit"] == 0'
check "clients submitted and cancelled meanwhile" drill 'of["submits"] > 0 and of["cancels"] > 0'
check "nothing that was acknowledged is lost" drill 'of["lost"] == 0'
check "no call was answered wrongly" drill 'of["wrong"] == 0'
check "the one that slept wakes, acknowledges nothing and ends" drill 'of["woken_that_did_not_end"] == 0'
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
