"""Writes random flocks and what the reference model of the design makes of them, a case a line.

    python3 cases.py MODEL_FOLDER FIRST_SEED COUNT > cases.jsonl

MODEL_FOLDER holds `model.py` and `test_model.py`. Their H is BLAKE2; here it is replaced by BLAKE3, as
in the product, so ids and random draws are the same to the bit (`pip install blake3`). One rule is
replaced too: the design lets a refused firing of a round be tried again at the end of that round.
"""
import json
import sys
from dataclasses import replace

from blake3 import blake3

sys.path.insert(0, sys.argv[1])
import model  # noqa: E402
import test_model  # noqa: E402


def h(*parts):
    return blake3(model.canonical(parts).encode()).hexdigest()[:32]


model.H = test_model.H = h


class State(model.State):
    """The model's state, but a refused firing waits for the end of its round."""

    def __init__(self):
        super().__init__()
        self.again = []

    def take(self):
        while self.round and any(self.round[0] is a for a in self.again):
            a = self.round[0]
            if self.stands(a):
                if "on" not in self.behaviors[a.behavior]["trigger"]:
                    self.agenda = [x for x in self.agenda if (x.behavior, x.match) != (a.behavior, a.match)]
                self.base, self.written = self.graph, {}
                break
            self.round.pop(0)
        if not self.round:
            self.again = []
        return super().take()

    def obey(self, e):
        if e.kind == "behavior.conflicted":
            a = replace(self.last, refused=self.last.refused + 1)
            self.again.append(a)
            self.round.append(a)
        else:
            super().obey(e)


model.State = test_model.State = State
SOURCES = {}
plain_reaction = test_model.a_reaction


def a_reaction(r, private):
    source = plain_reaction(r, private)
    for emitted in source["emits"]:
        if emitted[1] == "effect.requested":
            emitted[1] = "request.made"
    SOURCES[h(source)] = source
    return source


test_model.a_reaction = a_reaction


def behavior(b):
    return {**b, "source": SOURCES[b["hash"]]}


def fed(x):
    e = x.event
    payload = behavior(e.payload) if e.kind == "behavior.loaded" else e.payload
    event = {"id": e.id, "kind": e.kind, "payload": payload, "changes": e.changes, "key": e.key, "time": e.time}
    return {"need": x.need, "event": event}


def case(seed):
    flock = test_model.Flock(seed)
    store = flock.store()
    engine = model.Engine(store, "main", flock.library)
    model.drive(engine, flock.script, limit=test_model.LIMIT)
    events = [json.loads(e.line()) for e in store.read("main")]
    for e in events:
        del e["actor"]
        if e["kind"].split(".")[0] in ("behavior", "flock"):
            e["payload"] = {}
    return {
        "seed": seed,
        "schedule": flock.schedule,
        "limit": test_model.LIMIT,
        "behaviors": [behavior(b) for b in sorted(flock.behaviors, key=lambda b: b["name"])],
        "start": [{"kind": k, "payload": p, "changes": c} for k, p, c in flock.events],
        "script": [fed(x) for x in flock.script],
        "events": events,
    }


if __name__ == "__main__":
    first, count = int(sys.argv[2]), int(sys.argv[3])
    for n in range(first, first + count):
        print(model.canonical(case(n)))
