"""What shells and editors see of trainctl: completions, the manual, the schema, NO_COLOR, times. No Worker."""
import glob
import json
import os
import re
import shutil
import subprocess
import time

from tests.cases import Skip, case, main
from tests.e2e.harness import House, binaries

TRAINCTL = os.path.join(binaries(), "client/trainctl")
TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
MARKER = "<!-- Made by trainctl man --markdown -->\n"


def trainctl(*arguments, **variables):
    return subprocess.run([TRAINCTL, *arguments], capture_output=True, text=True, timeout=30,
                          env={**os.environ, **variables})


def complete(house, line):
    """What bash offers at the end of the line."""
    script = f"""
source <("{TRAINCTL}" completion bash)
trainctl() {{ "{TRAINCTL}" "$@"; }}
COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}
read -ra COMP_WORDS <<<"$COMP_LINE"
[[ $COMP_LINE == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_trainctl
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30, cwd=house.data,
                            env={**os.environ, "TRAINCTL_SERVER": house.server})
    assert result.returncode == 0, result
    return result.stdout.split()


@case("bash completes verbs, options, choices, fields, files and Jobs")
def _():
    with House(standalone=False) as house:
        house.start()
        house.write("only.yaml", "api: v1\n")
        job = house.submit(house.spec())
        assert complete(house, "trainctl sub") == ["submit"], complete(house, "trainctl sub")
        assert complete(house, "trainctl submit --forc") == ["--force-retrain"]
        assert complete(house, "trainctl list -o js") == ["json", "jsonl"]
        assert complete(house, "trainctl submit --set train.patie") == ["train.patience="]
        assert "only.yaml" in complete(house, "trainctl submit -f ")
        assert complete(house, "trainctl get blobs-") == [job["id"]]
        assert complete(house, "trainctl diff " + job["id"] + " blobs-") == [job["id"]]


def complete_by_fish(house, line):
    """What fish offers at the end of the line."""
    return ["fish", "--no-config", "-c", f'"{TRAINCTL}" completion fish | source; complete -C {line!r}']


def complete_by_zsh(house, line):
    """What the function of zsh gives to its completion system, which needs a terminal and is left out."""
    words = line.split(" ")
    return ["zsh", "-f", "-c", f"""
compdef() {{ }}
_files() {{ print -rl -- *(N) }}
compadd() {{ print -rl -- "${{(@P)2}}" }}
source <("{TRAINCTL}" completion zsh)
words=({" ".join(repr(w) for w in words)}); CURRENT={len(words)}
_trainctl"""]


@case("zsh and fish, where they are installed, complete verbs, options, choices, fields, files and Jobs")
def _():
    shells = {"zsh": complete_by_zsh, "fish": complete_by_fish}
    found = {name: command for name, command in shells.items() if shutil.which(name)}
    if not found:
        raise Skip("neither zsh nor fish is installed")
    with House(standalone=False) as house:
        house.start()
        house.write("only.yaml", "api: v1\n")
        job = house.submit(house.spec())
        path = os.path.dirname(TRAINCTL) + os.pathsep + os.environ["PATH"]
        for name, command in found.items():
            for line, wanted in (("trainctl sub", "submit"), ("trainctl submit --forc", "--force-retrain"),
                                 ("trainctl list -o js", "jsonl"), ("trainctl submit --set train.patie", "train.patience="),
                                 ("trainctl submit -f on", "only.yaml"), ("trainctl get blobs-", job["id"])):
                result = subprocess.run(command(house, line), capture_output=True, text=True, timeout=30, cwd=house.data,
                                        env={**os.environ, "TRAINCTL_SERVER": house.server, "PATH": path,
                                             "HOME": house.root})
                offered = [word.split("\t")[0] for word in result.stdout.splitlines()]
                assert wanted in offered and len(offered) < 8, (name, line, result)


@case("The scripts of bash, zsh and fish are printed; others are refused")
def _():
    for shell, part in (("bash", "complete -F _trainctl"), ("zsh", "#compdef trainctl"), ("fish", "complete -c trainctl")):
        result = trainctl("completion", shell)
        assert result.returncode == 0 and part in result.stdout and "__complete" in result.stdout, result
    assert trainctl("completion", "csh").returncode == 2
    checked = subprocess.run(["bash", "-n"], input=trainctl("completion", "bash").stdout, text=True, capture_output=True)
    assert checked.returncode == 0, checked


@case("The list of options in docs/TRAINCTL.md is that of the table")
def _():
    with open(os.path.join(TREE, "docs/TRAINCTL.md")) as f:
        written = f.read().split(MARKER)[1]
    made = trainctl("man", "--markdown").stdout
    assert written.strip() == made.strip(), "put the output of trainctl man --markdown there"


def problems(value, schema, path="spec"):
    """A validator of what the schema uses of JSON Schema."""
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}

    def is_kind(kind):
        if kind == "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        if kind == "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        return isinstance(value, kinds[kind])
    found = []
    if "anyOf" in schema and all(problems(value, s, path) for s in schema["anyOf"]):
        found.append(f"{path}: no form of anyOf")
    if "oneOf" in schema and sum(not problems(value, s, path) for s in schema["oneOf"]) != 1:
        found.append(f"{path}: not one form of oneOf")
    if "not" in schema and not problems(value, schema["not"], path):
        found.append(f"{path}: not")
    if "const" in schema and value != schema["const"]:
        found.append(f"{path}: not {schema['const']}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is none of {schema['enum']}")
    kind = schema.get("type")
    if kind and not any(is_kind(k) for k in ([kind] if isinstance(kind, str) else kind)):
        return found + [f"{path}: {value!r} is no {kind}"]
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{path}: {value!r} does not match")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            found.append(f"{path}: {value} is out of range")
    if isinstance(value, list):
        found += [p for i, item in enumerate(value) for p in problems(item, schema.get("items", {}), f"{path}[{i}]")]
    if isinstance(value, dict):
        found += [f"{path}: lacks {key}" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            below = schema.get("properties", {}).get(key, schema.get("additionalProperties", True))
            if below is False:
                found.append(f"{path}: unknown key {key}")
            elif below is not True:
                found += problems(item, below, f"{path}.{key}")
    return found + [p for s in schema.get("allOf", []) for p in problems(value, s, path)]


def as_json(text):
    """A YAML spec of the examples as JSON, by trainctl's own reader of such maps."""
    return json.loads(subprocess.run(["python3", "-c", "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))"],
                                     input=text, capture_output=True, text=True, check=True).stdout)


GOOD = {"api": "v1", "task": {"type": "classification"}, "data": {"train": "a.csv", "target": "y", "folds": 3},
        "model": {"mlp": {"hidden": [16]}}, "train": {"epochs": 3, "batch": "auto"}, "budget": {"time": "20 s"}}


@case("The JSON Schema takes good specs and refuses wrong ones at their place")
def _():
    schema = json.loads(trainctl("schema").stdout)
    assert schema["$schema"].endswith("2020-12/schema"), schema["$schema"]
    assert problems(GOOD, schema) == [], problems(GOOD, schema)
    for change, place in (({"budget": {"time": 20}}, "spec.budget.time"), ({"budget": {"time": "20"}}, "spec.budget.time"),
                          ({"data": {"train": "a.csv", "target": "y", "folds": 1}}, "spec.data.folds"),
                          ({"task": {"type": "klassification"}}, "spec.task.type"),
                          ({"model": {"mlp": {}, "lstm": {}}}, "spec.model"),
                          ({"train": {"lr": 1}}, "spec.train: unknown key lr")):
        found = problems({**GOOD, **change}, schema)
        assert found and any(p.startswith(place) for p in found), (change, found)
    assert problems({**GOOD, "model": "auto"}, schema) == []
    assert problems({key: GOOD[key] for key in GOOD if key != "data"}, schema) != []
    assert problems({"from": "digits-1", "budget": {"time": "1m"}}, schema) == []


@case("The JSON Schema takes every example")
def _():
    try:
        as_json("a: 1")
    except subprocess.CalledProcessError:
        print("no YAML module here; the good spec of the case before stands for the examples")
        return
    schema = json.loads(trainctl("schema").stdout)
    specs = glob.glob(os.path.join(TREE, "examples/*/*.yaml"))
    assert len(specs) >= 7, specs
    for path in specs:
        with open(path) as f:
            found = problems(as_json(f.read()), schema)
        assert found == [], (path, found)


@case("NO_COLOR is obeyed unless it is empty or --color says otherwise")
def _():
    with House(standalone=False) as house:
        house.start()
        job = house.submit(house.spec())

        def coloured(*options, **variables):
            command = " ".join([TRAINCTL, "--server", house.server, "get", job["id"], *options])
            result = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, text=True,
                                    env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"},
                                         "TERM": "xterm", **variables})
            assert result.returncode == 0, result
            return "\x1b[" in result.stdout
        assert coloured() and coloured(NO_COLOR="")
        assert not coloured(NO_COLOR="1") and not coloured(TERM="dumb")
        assert coloured("--color", "always", NO_COLOR="1")


@case("trainctl starts within 50 ms, on a machine that may be busy")
def _():
    times = []
    for _ in range(20):
        begin = time.monotonic()
        assert trainctl("version").returncode == 0
        times.append(time.monotonic() - begin)
    assert min(times) < 0.05, times


main()
