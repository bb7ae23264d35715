"""Writers that commit until they are killed: run as a script, it starts one for each line of its input.

They are forked, since a process that has to import PyTorch first takes seconds to start.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from random import Random

import torch

import recollect as rc
from recollect.memory import file
from torture import change, codec, fingerprint, learned, small_cache


def commit_forever(path: Path, log: Path, seed: int, ready: int) -> None:
    """In the log stands what is about to be committed, and "done" when it was."""
    random = Random(seed)
    if random.random() < 0.5:
        file._connect = small_cache
    memory = rc.Memory.open(path, codec=codec()) if path.exists() and path.stat().st_size else learned()
    lines = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        change(memory, random)
        os.write(lines, f"{fingerprint(memory)}\n".encode())
        os.write(ready, b".")
        memory.commit(path)
        os.write(lines, b"done\n")


def main() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        order = json.loads(line)
        waiting, ready = os.pipe()
        writer = os.fork()
        if writer == 0:
            try:
                commit_forever(Path(order["path"]), Path(order["log"]), order["seed"], ready)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        os.close(ready)
        os.read(waiting, 1)  # until its first commit begins
        time.sleep(order["seconds"])
        os.kill(writer, signal.SIGKILL)
        os.close(waiting)
        print(os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
