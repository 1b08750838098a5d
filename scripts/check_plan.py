"""Checks a plan that was written as JSON, knowing nothing of how it was made.

    python3 scripts/check_plan.py PLAN.json

The schema is described in docs/plan-json.md. Only the standard library is used. Prints one line for each schedule, and ends
with status 1 at the first fault.
"""

import json
import sys

SCHEMA = "plimsoll-plan/1"


class Fault(Exception):
    pass


def require(condition, message):
    if not condition:
        raise Fault(message)


def round_up(bytes_, alignment):
    return -(-bytes_ // alignment) * alignment


def check_buffer(buffer, schedule, steps):
    """A buffer is aligned, inside its part of the arena, and alive for at least a step."""
    name, start, end = buffer["name"], buffer["offset"], buffer["offset"] + buffer["size"]
    require(start % buffer["alignment"] == 0, f"{name} lies at {start}, off its alignment of {buffer['alignment']}")
    require(end <= schedule["length"], f"{name} ends at {end}, outside the arena of {schedule['length']}")
    require(0 <= buffer["lower"] < buffer["upper"] <= max(steps, 1), f"{name} has no lifespan within the steps")
    boundary = schedule["persistent_bytes"]
    if buffer["persistent"]:
        require(end <= boundary, f"{name} is persistent and ends at {end}, beyond {boundary}")
        require((buffer["lower"], buffer["upper"]) == (0, max(steps, 1)), f"{name} is persistent and does not live throughout")
    else:
        require(start >= boundary, f"{name} lies at {start}, among the persistent buffers")
    times = [holding["from"] for holding in buffer["holds"]]
    require(times and times == sorted(times), f"what {name} holds is not in order")


def check_overlaps(buffers, steps):
    """At no step do two live buffers share a byte."""
    beginning, ending = {}, {}
    for buffer in buffers:
        if buffer["size"] > 0:
            beginning.setdefault(buffer["lower"], []).append(buffer)
            ending.setdefault(buffer["upper"], []).append(buffer)
    live = {}
    for time in range(max(steps, 1)):
        for buffer in ending.get(time, []):
            del live[id(buffer)]
        for buffer in beginning.get(time, []):
            live[id(buffer)] = buffer
        if time in beginning:
            ordered = sorted(live.values(), key=lambda buffer: buffer["offset"])
            for low, high in zip(ordered, ordered[1:]):
                require(
                    low["offset"] + low["size"] <= high["offset"],
                    f"at step {time}, {low['name']} and {high['name']} share bytes",
                )


def check_operands(schedule):
    """A step touches only buffers that are alive, and reads nothing that was never written."""
    buffers = schedule["buffers"]
    inputs = {"input"}
    written = {i for i, b in enumerate(buffers) if b["persistent"] or b["class"] in inputs}
    for time, step in enumerate(schedule["steps"]):
        for operand in step["operands"]:
            buffer = buffers[operand["buffer"]]
            require(
                buffer["lower"] <= time < buffer["upper"],
                f"step {time}, {step['name']}, touches {buffer['name']} outside its lifespan",
            )
            if operand["access"] == "write":
                written.add(operand["buffer"])
            require(
                operand["buffer"] in written,
                f"step {time}, {step['name']}, reads {buffer['name']}, which nothing has written",
            )


def check_bound(schedule):
    """The lower bound is the most bytes live at one step, and the arena is no shorter."""
    live = [0] * max(len(schedule["steps"]), 1)
    for buffer in schedule["buffers"]:
        for time in range(buffer["lower"], buffer["upper"]):
            live[time] += round_up(buffer["size"], buffer["alignment"])
    most = max(live)
    require(schedule["lower_bound"] == most, f"the lower bound is {schedule['lower_bound']}, but {most} bytes are live at once")
    require(schedule["peak_step"] == live.index(most), f"the peak is at step {live.index(most)}, not {schedule['peak_step']}")
    require(schedule["length"] >= most, f"the arena of {schedule['length']} is below its lower bound of {most}")


def check_schedule(schedule):
    steps = len(schedule["steps"])
    for buffer in schedule["buffers"]:
        check_buffer(buffer, schedule, steps)
    check_overlaps(schedule["buffers"], steps)
    check_operands(schedule)
    check_bound(schedule)


def check_plan(plan):
    require(plan["schema"] == SCHEMA, f"the schema is {plan['schema']}, not {SCHEMA}")
    training, inference, shift = plan["training"], plan["inference"], plan["evaluation_shift"]
    check_schedule(inference)
    peak, bound = inference["length"], inference["lower_bound"]
    require(plan["inference_bytes"] == inference["length"], "inference_bytes is not the length of inference's arena")
    if training is None:
        require(shift == 0, "only a trainer's evaluation is shifted")
    else:
        check_schedule(training)
        require(
            shift == training["persistent_bytes"] - inference["persistent_bytes"],
            "evaluation_shift is not the room of the optimizer's state",
        )
        peak = max(training["length"], peak + shift)
        bound = max(training["lower_bound"], bound + shift)
        # One arena serves both: what both keep lies at the same offsets.
        for kept, same in zip(inference["buffers"], training["buffers"]):
            if kept["persistent"]:
                require(
                    (kept["name"], kept["offset"], kept["size"]) == (same["name"], same["offset"], same["size"]),
                    f"{kept['name']} lies elsewhere in training",
                )
    require(plan["peak_bytes"] == peak, f"peak_bytes is {plan['peak_bytes']}, but the arenas make {peak}")
    require(plan["lower_bound_bytes"] == bound, f"lower_bound_bytes is {plan['lower_bound_bytes']}, not {bound}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    try:
        check_plan(plan)
    except (Fault, KeyError, IndexError, TypeError) as fault:
        sys.exit(f"{plan.get('network', '?')}: {type(fault).__name__}: {fault}")
    for name in ["training", "inference"]:
        if plan[name]:
            part = plan[name]
            print(f"{plan['network']}, {name}: {len(part['buffers'])} buffers, {len(part['steps'])} steps, {part['length']} bytes")
    print(f"{plan['network']}: peak {plan['peak_bytes']}, lower bound {plan['lower_bound_bytes']}")


main()
