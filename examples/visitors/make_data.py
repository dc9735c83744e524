#!/usr/bin/env python3
"""Makes train.csv and test.csv: two years of days at two pools, with the last four weeks to
forecast. The number of visitors depends on the weekday, the season and the weather of the day
before."""
import csv
import datetime
import math
import random

DAYS, AHEAD = 730, 28


def pool(name, size, chance):
    first = datetime.date(2024, 1, 1)
    warm = 15.0
    for i in range(DAYS):
        day = first + datetime.timedelta(days=i)
        summer = math.sin((i - 100) * 2 * math.pi / 365.25)
        visitors = size * (2 + summer) * (1.6 if day.weekday() >= 5 else 1) * (1 + 0.02 * max(0, warm - 15))
        warm = 15 + 8 * summer + chance.gauss(0, 4)
        yield day.isoformat(), name, f"{warm:.1f}", f"{visitors * chance.uniform(0.9, 1.1):.0f}"


def main():
    chance = random.Random(1)
    pools = [list(pool("north", 100, chance)), list(pool("lido", 260, chance))]
    for path, part in (("train.csv", slice(0, DAYS - AHEAD)), ("test.csv", slice(DAYS - AHEAD, DAYS))):
        with open(path, "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f, lineterminator="\n")
            out.writerow(["day", "pool", "warmth", "visitors"])
            for rows in zip(*(days[part] for days in pools)):
                out.writerows(rows)


if __name__ == "__main__":
    main()
