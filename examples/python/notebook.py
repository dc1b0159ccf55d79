# %% [markdown]
# Readings of a sensor, minute by minute. Each cell may run again, and all of them after the death
# of the kernel: they go on from the last psync.

# %%
import indelible
import numpy as np

pool = indelible.open("readings.pmo", size=256 << 20)
MINUTE = np.dtype([("time", "M8[m]"), ("celsius", "f4")])
readings = pool.array("readings", (-1,), MINUTE)  # as long as the last psync left it
notes = pool.dict("notes")

# %% [markdown]
# A day's readings and its notes become durable as one step.


# %%
def measure(day):
    """Stands for the sensor."""
    random = np.random.default_rng(day)
    new = np.zeros(1440, MINUTE)
    new["time"] = np.datetime64("2026-01-01", "m") + 1440 * day + np.arange(1440)
    new["celsius"] = 10 - 8 * np.cos(np.arange(1440) / 1440 * 2 * np.pi) + random.normal(size=1440)
    return new


for day in range(len(readings) // 1440, 30):
    new = measure(day)
    readings = readings.grow(len(readings) + len(new))
    readings[-len(new) :] = new
    notes[f"day {day}"] = {"mean": float(new["celsius"].mean()), "checked": False}
    indelible.psync(readings, notes)
    print(f"day {day}", flush=True)

# %% [markdown]
# A mistake is undone without opening anything again.

# %%
readings["celsius"] = np.nan
readings = readings.revert()
assert not np.isnan(readings["celsius"]).any()

# %% [markdown]
# The table of all days is an object as well: assigning a frame replaces the former one in one step.
# It needs pandas and pyarrow.

# %%
import pandas as pd

days = readings["celsius"].reshape(-1, 1440)
index = pd.date_range("2026-01-01", periods=len(days), name="day")
pool["days"] = pd.DataFrame({"low": days.min(1), "mean": days.mean(1), "high": days.max(1)}, index)
print(pool["days"].describe())

# %% [markdown]
# The notes of a day are a copy that refuses changes: assign a changed one.

# %%
for day in range(len(days)):
    notes[f"day {day}"] = {**notes[f"day {day}"], "checked": True}
notes.psync()
print(f"{len(days)} days, {sum(note['checked'] for note in notes.values())} checked")

# %%
pool  # a table of the objects, in a notebook
