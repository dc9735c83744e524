#!/usr/bin/env python3
"""Makes train.csv and test.csv: reviews of places to stay, from a few templates. A statement may be negated
("not at all dull"), so the same words make a good or a bad review depending on their order.

    make_data.py [--out DIR] [--rows 2400] [--test 400]
"""
import argparse
import csv
import os
import random

THINGS = ["room", "food", "staff", "garden", "view", "bed", "breakfast", "price", "pool", "bar", "street", "bath"]
GOOD = ["lovely", "clean", "quiet", "friendly", "bright", "fresh", "charming", "generous"]
BAD = ["dull", "dirty", "noisy", "rude", "dark", "stale", "shabby", "mean"]
PLAIN = ["the {thing} was {word}", "we found the {thing} {word}", "a {word} {thing}", "{word} {thing} , as we were told"]
DENIED = ["the {thing} was not {word}", "we did not find the {thing} {word}", "no {word} {thing} at all",
          "nobody could call the {thing} {word}", "far from a {word} {thing}"]
IDLE = ["we came by train", "it rained on the second day", "my sister had booked it", "we stayed three nights",
        "the old town is near", "our dog came along"]


def review(chance):
    """Returns a text, a number of nights, and whether it praises more things than it blames (never equally many)."""
    said, praised = [], 0
    for thing in chance.sample(THINGS, chance.choice((1, 3))):
        good, denied = chance.random() < 0.5, chance.random() < 0.35
        form = chance.choice(DENIED if denied else PLAIN)
        said.append(form.format(thing=thing, word=chance.choice(GOOD if good else BAD)))
        praised += 1 if good != denied else -1
    said.insert(chance.randrange(len(said)), chance.choice(IDLE))
    return " . ".join(said).capitalize() + " .", chance.randint(1, 9), "liked" if praised > 0 else "disliked"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--test", type=int, default=400)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    chance = random.Random(5)
    for name, rows in (("train.csv", options.rows), ("test.csv", options.test)):
        with open(os.path.join(options.out, name), "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f, lineterminator="\n")
            out.writerow(["review", "nights", "verdict"])
            out.writerows(review(chance) for _ in range(rows))


if __name__ == "__main__":
    main()
