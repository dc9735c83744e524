"""How many Workers traind-provision asks for: rules, and an engine and Workers under a simulated clock."""
import random

from deploy.provision.traind_provision.plan import RUNNING, WAITING, Lent, Limits, Planner, Seen
from tests.cases import case, main


def waiting(*ids):
    return [Lent(id, WAITING) for id in ids]


def running(*ids):
    return [Lent(id, RUNNING) for id in ids]


def seen(wanted, *attached, slots=1):
    return Seen(wanted, slots * len(attached), frozenset(attached))


def nothing(plan):
    return plan.submit == 0 and not plan.cancel


@case("It asks for what is short, and not again for what is on its way")
def _():
    planner = Planner(Limits(most=8, slots=2, at_once=8))
    assert planner.round(Seen(5, 0), [], 0).submit == 3
    assert nothing(planner.round(Seen(5, 0), waiting("1", "2", "3"), 15))
    assert nothing(planner.round(Seen(5, 0), running("1", "2", "3"), 30))  # they start
    assert nothing(planner.round(seen(5, "1", "2", "3", slots=2), running("1", "2", "3"), 45))
    assert planner.round(seen(9, "1", "2", "3", slots=2), running("1", "2", "3"), 60).submit == 2


@case("A Worker that is lost is replaced at once, also where nothing is known of how long the others run")
def _():
    planner = Planner(Limits())
    assert planner.round(seen(2, "2"), running("2"), 0).submit == 1


@case("Slots of other Workers count; those that are drained do not")
def _():
    assert nothing(Planner(Limits()).round(Seen(4, 4), [], 0))
    assert Planner(Limits()).round(Seen(4, 2, frozenset({"7"})), running("7"), 0).submit == 2


@case("There are never more than most, and never fewer than least")
def _():
    planner = Planner(Limits(least=1, most=3, at_once=8))
    assert planner.round(Seen(0, 0), [], 0).submit == 1
    assert planner.round(Seen(100, 0), waiting("1"), 1).submit == 2
    plan = planner.round(seen(100, "1", "2", "3"), running("1", "2", "3"), 2)
    assert nothing(plan) and "there are 3 already" in plan.why, plan
    planner = Planner(Limits(least=2, most=3, patience=0))
    planner.round(Seen(0, 0), waiting("1", "2", "3"), 0)
    assert planner.round(Seen(0, 0), waiting("1", "2", "3"), 1).cancel in (["1"], ["2"], ["3"])


@case("Requests that are not needed are taken back after a while, the newest first; what runs never")
def _():
    planner = Planner(Limits(patience=60))
    planner.round(Seen(3, 0), waiting("old"), 0)
    planner.round(Seen(3, 0), waiting("old", "new"), 10)
    assert nothing(planner.round(Seen(1, 0), waiting("old", "new"), 20))
    assert nothing(planner.round(Seen(2, 0), waiting("old", "new"), 70))  # needed again
    assert nothing(planner.round(Seen(1, 0), waiting("old", "new"), 80))
    assert planner.round(Seen(1, 0), waiting("old", "new"), 141).cancel == ["new"]
    assert nothing(planner.round(seen(0, "old"), running("old"), 1000))
    assert planner.failures == 0, "taken back is not failed"


@case("Workers that end at once are asked for less and less often")
def _():
    planner, asked = Planner(Limits(first_pause=30, longest_pause=900)), []
    alive = []
    for now in range(0, 4 * 3600, 15):
        plan = planner.round(Seen(1, 0), alive, now)
        alive = waiting(f"w{now}") if plan.submit else []
        asked += [now] * plan.submit
    assert 10 <= len(asked) <= 26, asked
    assert min(b - a for a, b in zip(asked[-4:], asked[-3:])) >= 900, asked


@case("Workers that run and are not attached are told of, and no more are asked for")
def _():
    planner = Planner(Limits())
    planner.round(Seen(4, 0), running("1", "2"), 0)
    plan = planner.round(Seen(4, 0), running("1", "2"), 100)
    assert nothing(plan) and "1, 2 run and are not attached, see their logs" in plan.why, plan
    # One that was cut off is replaced.
    plan = planner.round(seen(4, "1"), running("1", "2"), 110)
    assert plan.submit == 3 and "2 run and are not attached" in plan.why, plan
    assert planner.round(seen(4, "1", "2"), running("1", "2"), 115).submit == 2


class World:
    """An engine that starts Workers after a while, Workers that end when idle, and Jobs that come and go."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.limits = Limits(least=self.chance.choice([0, 0, 1]), most=self.chance.randint(1, 10),
                             slots=self.chance.randint(1, 4), at_once=self.chance.randint(1, 5))
        self.queue_s = self.chance.choice([1, 30, 400])
        self.idle_s = self.chance.choice([61, 300])
        self.fails = self.chance.choice([0, 0, 0, 0.2])
        self.wanted, self.number, self.workers = 0, 0, {}

    def lent(self, now):
        return [Lent(id, RUNNING if now >= w["starts"] else WAITING) for id, w in self.workers.items()]

    def seen(self, wanted, now):
        return seen(wanted, *(id for id, w in self.workers.items() if now >= w["starts"] + 20), slots=self.limits.slots)

    def live(self, now):
        busy = self.wanted
        for id in sorted(self.workers):
            w = self.workers[id]
            if now < w["starts"] + 20:
                continue
            if busy > 0:
                busy, w["idle"] = busy - self.limits.slots, now
            elif now - w["idle"] >= self.idle_s:
                del self.workers[id]
        for id in [i for i, w in self.workers.items() if w["starts"] <= now and w["fails"]]:
            del self.workers[id]

    def submit(self, now):
        self.number += 1
        starts = now + self.chance.uniform(0, self.queue_s)
        self.workers[f"{self.number:05}"] = {"starts": starts, "idle": starts + 20,
                                             "fails": self.chance.random() < self.fails}


@case("Under 500 seeds: never too many, nothing that runs is taken back, and work is served")
def _():
    for seed in range(500):
        world = World(seed)
        planner, starved = Planner(world.limits), 0
        for step in range(400):
            now = step * 15.0
            if world.chance.random() < 0.02:
                world.wanted = world.chance.choice([0, 0, 1, 3, 10, 50])
            world.live(now)
            lent, now_seen = world.lent(now), world.seen(world.wanted, now)
            plan = planner.round(now_seen, lent, now)
            for id in plan.cancel:
                assert next(w.state for w in lent if w.id == id) == WAITING, (seed, step)
                del world.workers[id]
            for _ in range(plan.submit):
                world.submit(now)
            assert len(world.workers) <= world.limits.most, (seed, step)
            short = now_seen.open < min(world.wanted, world.limits.most * world.limits.slots)
            starved = starved + 15 if short else 0
            assert starved <= 15 * 60 + world.queue_s or world.fails, (seed, step, plan.why)
        while world.wanted or any(world.workers):  # then it is idle
            world.wanted, now = 0, now + 15
            world.live(now)
            plan = planner.round(world.seen(0, now), world.lent(now), now)
            for id in plan.cancel:
                del world.workers[id]
            assert plan.submit <= world.limits.least, seed
            if world.limits.least:
                break
            assert now < 400 * 15 + 3600, f"seed {seed}: Workers are left"


if __name__ == "__main__":
    main()
