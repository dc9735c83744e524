"""Workers whose state folder is not traind's."""
import glob
import os
import subprocess


def hidden(house, *folders):
    """A command that runs the rest of its line where these folders are empty; nothing where mount
    namespaces are not permitted."""
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        print("mount namespaces are not permitted here: the folders are not hidden", flush=True)
        return []
    mounts = "".join(f"mount -t tmpfs none '{folder}' && " for folder in folders)
    return [*command, "sh", "-c", mounts + 'exec "$@"', "sh"]


def start_alone(house, name, slots=1):
    """A Worker in a state folder of its own."""
    state = os.path.join(house.root, name)
    house.start_worker(slots, state, hidden(house, house.state, house.data))
    return state


def files(folder, pattern):
    return glob.glob(os.path.join(folder, pattern), recursive=True)
