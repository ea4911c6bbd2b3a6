"""benches/scale.py: fits, recorded tasks, estimates, and the simulation against closed forms."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import scale
from scaling import chart, corpora, estimate, heaps, parameters, rates, scenario, tasks
from scaling.simulate import Cluster, Outcome, simulate

BENCHES = Path(scale.__file__).parent
RECORD = BENCHES / "record" / "x86_64-2cpu"


def outcome(durations, seed=0, **cluster) -> Outcome:
    return simulate(durations, Cluster(**cluster), random.Random(seed))


# ---------------------------------------------------------------------- the simulation


@pytest.mark.parametrize(("tasks", "workers"), [(1, 1), (1, 5), (7, 3), (1000, 10), (1001, 10)])
def test_equal_tasks_run_in_rounds(tasks, workers):
    found = outcome([2.5] * tasks, workers=workers)
    assert found.makespan == pytest.approx(math.ceil(tasks / workers) * 2.5)
    assert found.ideal == pytest.approx(tasks * 2.5 / workers)
    assert found.useful == found.busy == pytest.approx(tasks * 2.5)
    assert (found.wasted, found.failures, found.attempts) == (0, 0, tasks)


def test_a_slow_driver_starts_one_task_after_another():
    found = outcome([0.001] * 500, workers=100, starts_per_second=50)
    assert found.makespan == pytest.approx(500 / 50 + 0.001)
    # With few workers, the driver waits for them instead.
    assert outcome([1.0] * 100, workers=2, starts_per_second=1000).makespan == pytest.approx(
        50 * (1.0 + 1 / 1000), rel=0.01
    )


@pytest.mark.parametrize("hours", [1.0, 2.0, 0.5])
def test_retries_of_exponential_failures(hours):
    # A task of t seconds survives with probability e^(-t / MTBF), so it needs e^(t / MTBF)
    # attempts. A failed one loses the mean of an exponential time that is below t.
    seconds, count = 3600.0, 20_000
    found = outcome([seconds] * count, workers=50, mtbf_hours=hours, recovery_seconds=10)
    rate = 1 / hours  # per task
    expected = math.exp(rate)
    deviation = math.sqrt(math.exp(2 * rate) - math.exp(rate)) / math.sqrt(count)
    assert abs(found.attempts / count - expected) < 5 * deviation
    assert found.failures == found.attempts - count
    lost = seconds * (1 / rate - 1 / (math.exp(rate) - 1))
    assert found.wasted / found.failures == pytest.approx(lost, rel=0.02)


def test_a_worker_that_failed_comes_back_later():
    found = outcome([3600.0] * 200, workers=1, mtbf_hours=2.0, recovery_seconds=600)
    assert found.failures > 50
    assert found.makespan == pytest.approx(found.busy + 600 * found.failures)


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_busy_time_is_useful_or_wasted_and_every_task_counts_once(copies, seed):
    rng = random.Random(seed)
    durations = [rng.uniform(1, 20) for _ in range(600)]
    found = outcome(
        durations,
        seed,
        workers=40,
        starts_per_second=100,
        straggler_share=0.05,
        straggler_slowdown=6,
        mtbf_hours=0.05,
        recovery_seconds=5,
        copies=copies,
    )
    assert found.busy == pytest.approx(found.useful + found.wasted)
    # A failure needs a retry, unless a copy of the task is running.
    unneeded = found.tasks + found.failures + found.copies - found.attempts
    assert 0 <= unneeded <= found.copies
    assert found.useful >= sum(durations) - 1e-6
    assert found.busy <= 40 * found.makespan
    assert found.failures > 0 and (found.copies > 0) == copies


def test_copies_bound_the_tail():
    settings = {"workers": 100, "straggler_share": 0.01, "straggler_slowdown": 20}
    plain = outcome([10.0] * 1000, **settings)
    copied = outcome([10.0] * 1000, **settings, copies=True)
    # A straggler is copied 15 s after its start, and the copy takes 10 s.
    assert plain.makespan == pytest.approx(290, abs=11)
    assert copied.makespan < 130
    assert copied.copies > 0 and copied.wasted > 0


def test_the_same_seed_gives_the_same_run():
    settings = {"workers": 20, "speed_spread": 0.2, "mtbf_hours": 0.1, "copies": True}
    durations = [5.0] * 300
    assert outcome(durations, 1, **settings) == outcome(durations, 1, **settings)
    assert outcome(durations, 1, **settings) != outcome(durations, 2, **settings)


# ---------------------------------------------------------------------- Heaps' law


def test_a_power_law_is_recovered():
    sizes = [10.0**power for power in range(3, 10)]
    law = heaps.fit(sizes, [7 * size**0.6 for size in sizes])
    assert law.beta == pytest.approx(0.6)
    assert math.exp(law.log_k) == pytest.approx(7)
    assert law.worst < 1e-9
    assert law(1e12) == pytest.approx(7 * 1e12**0.6)


def test_a_fit_needs_two_points():
    with pytest.raises(ValueError, match="at least two points"):
        heaps.fit([1.0], [1.0])


def point(halving: int, distinct: int | None = None) -> heaps.Point:
    size = 10**9 >> halving
    distinct = distinct or round(10 * size**0.6)
    cuts = [
        heaps.Pruned(t, distinct // 2, round(size**0.6 * t**0.4), t * 100) for t in (2, 10, 100)
    ]
    return heaps.Point(
        corpus="made",
        halving=halving,
        documents=5,
        bytes=size,
        pretokens=size // 4,
        distinct=distinct,
        distinct_bytes=10 * distinct,
        saved_bytes=700_000 + 8 * distinct,
        empty_bytes=700_000,
        pruned=tuple(cuts),
    )


def test_samples_of_one_size_are_averaged(tmp_path):
    points = [point(0), point(2, 100), point(2, 300), point(1)]
    found = heaps.average(points)
    assert [p.halving for p in found] == [2, 1, 0]
    assert found[0].distinct == 200
    path = tmp_path / "heaps.jsonl"
    lines = [heaps.as_line(p, {"date": "1"}, "abc") for p in [point(3, 5)]]
    lines += [heaps.as_line(p, {"date": "2"}, "abc") for p in points]
    path.write_text("\n".join(lines) + "\n")
    assert heaps.read_points(path) == {"made": found}  # those of the last time


def test_documents_are_sampled_without_overlap():
    whole = [bytes([65 + n]) * 10 for n in range(16)]
    order = corpora.shuffled(whole)
    assert order != whole and sorted(order) == whole
    parts = [corpora.sample(order, 40, start=40 * part) for part in range(4)]
    assert [document for part in parts for document in part] == order


def test_a_cipher_changes_words_but_not_their_shape():
    assert corpora.cipher(0) == bytes(range(256))
    table = corpora.cipher(1)
    assert sorted(table) == list(range(256))
    text = "Abc ABC, é 12".encode()
    changed = text.translate(table)
    assert changed != text and changed.lower() == text.lower().translate(table)
    assert [chr(c).isalpha() for c in changed] == [chr(c).isalpha() for c in text]


def test_a_corpus_is_measured(tmp_path):
    documents = [f"number {n} of {n * n}\n".encode() * 3 for n in range(40_000)]
    points = list(heaps.measure("made", documents, tmp_path / "counts"))
    assert [p.halving for p in points] == [1, 1, 0]
    assert points[-1].documents == len(documents)
    assert points[-1].saved_bytes > points[-1].empty_bytes > 0
    assert "made" in heaps.report({"made": heaps.average(points)})


# ---------------------------------------------------------------------- recorded tasks


def test_tasks_are_read_and_failures_left_out(tmp_path):
    path = tmp_path / "tasks.jsonl"
    path.write_text(
        '{"stage": "count", "bytes": 100, "seconds": 2.0, "worker": "a", "rows": 5}\n'
        '{"stage": "count", "bytes": 100, "seconds": 9.0, "ok": false}\n'
        '{"stage": "reduce", "bytes": 10, "seconds": 1}\n'
    )
    assert tasks.read_tasks([path]) == [tasks.Task("count", 100, 2.0), tasks.Task("reduce", 10, 1)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "expected a JSON object"),
        ("[1]", "expected a stage"),
        ('{"stage": "map", "bytes": 1, "seconds": 1}', "expected a stage"),
        ('{"stage": "count", "bytes": 0, "seconds": 1}', "greater than 0"),
        ('{"stage": "count", "bytes": 1, "seconds": true}', "greater than 0"),
        ('{"stage": "count", "bytes": 1}', "greater than 0"),
    ],
)
def test_a_bad_line_is_an_error_with_its_number(tmp_path, line, message):
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"stage": "count", "bytes": 1, "seconds": 1}\n' + line + "\n")
    with pytest.raises(ValueError, match=message) as error:
        tasks.read_tasks([path])
    assert f"{path}:2" in str(error.value)


def test_times_scale_with_bytes_after_a_fixed_part():
    recorded = [tasks.Task("count", size, 3 + size / 10) for size in (100, 200, 400)]
    times = tasks.Times(recorded, "count")
    assert times.fixed == pytest.approx(3)
    assert times.draw(1000, random.Random(0)) == pytest.approx(103)
    assert times.mean(1000) == pytest.approx(103)
    with pytest.raises(ValueError, match="no recorded tasks of stage 'write'"):
        tasks.Times(recorded, "write")


def test_every_stage_is_recorded(tmp_path):
    import byteweld

    tokenizer = byteweld.train(documents=["low lower lowest"], vocab_size=260)
    documents = [b"low and lower and lowest\n" * 50 for _ in range(20)]
    slices = corpora.write_slices(documents, tmp_path / "slices", 3000)
    found = list(tasks.record(slices, tokenizer, tmp_path / "scratch"))
    assert {line["stage"] for line in found} == set(tasks.STAGES)
    assert all(line["seconds"] > 0 and line["bytes"] > 0 for line in found)
    assert not (tmp_path / "scratch").exists()


# ---------------------------------------------------------------------- estimates


def made_rates() -> dict[str, list[dict[str, object]]]:
    def run(seconds: float, **facts: object) -> dict[str, object]:
        return {"wall_seconds": seconds, "measure": "", **facts}

    trained = {
        f"train {rows}": [
            run(
                1 + rows * 1e-6,
                measure="train",
                vocab_size=128_000,
                rows=rows,
                least_count=50,
                bytes=10**9,
            )
        ]
        for rows in (10**6, 2 * 10**6)
    }
    return trained | {
        "count": [run(1.0, bytes=2 * 10**8), run(9.0, bytes=2 * 10**8), run(0.5, bytes=2 * 10**8)],
        "save": [run(1.0, rows=10**6)],
        "merge and save": [run(1.0, rows=10**6)],
        "encode": [run(1.0, bytes=10**8, text_bytes=10**8, tokens=25 * 10**6)],
        "write": [run(1.0, bytes=10**9)],
    }


def made_model() -> estimate.Model:
    return estimate.Model.from_record([point(h) for h in range(6, -1, -1)], made_rates())


def test_an_estimate_from_a_small_record():
    model = made_model()
    assert model.tail.beta == pytest.approx(0.6, abs=1e-4)
    assert model.count_bytes == 2 * 10**8  # the median of the runs
    assert model.text_bytes_per_token == 4
    changes = ["slice_bytes=1e9", "store_mb_per_second=100", "price_core_hour=1", "workers=8"]
    values = parameters.read(BENCHES / "scale.toml", [*changes, "thresholds=[1, 100]"])
    found = estimate.estimate(model, 1e12, values)
    rows = 10 * 1e9**0.6  # of a slice
    assert found.slices == 1000 and found.files == 16_000
    assert found.shuffled_rows == pytest.approx(1000 * rows, rel=1e-3)
    assert found.shuffled_bytes == pytest.approx(1000 * (700_000 + 8 * rows), rel=1e-3)
    saved = found.shuffled_bytes / 1e8
    count = 1e12 / 2e8 + 1e12 / 1e8 + 1000 * rows / 1e6 + saved
    assert found.count_hours == pytest.approx(count / 3600, rel=1e-3)
    assert found.encode_hours == pytest.approx((1e12 / 1e8 * 2 + 1e12 / 1e8) / 3600, rel=1e-3)
    assert found.ids_bytes == pytest.approx(1e12)
    assert found.reduce_wall_hours == pytest.approx(found.reduce_hours / 8)
    assert found.distinct == pytest.approx((10 * 1e12**0.6,) * 2, rel=1e-3)
    assert found.core_cost == pytest.approx(found.core_hours)
    exact, pruned = found.kept
    assert exact.left_out == exact.word_error == exact.pair_error == 0
    assert pruned.word_error == 99
    assert pruned.distinct[0] == pytest.approx(10 * 1e10**0.6, rel=1e-3)
    assert pruned.memory[0] < exact.memory[0]
    # The distinct pre-tokens have 10 bytes each, and 11 slots.
    assert exact.fits == "yes" and exact.distinct[1] * 11 < 2**32
    exact_of_more, pruned_of_more = estimate.estimate(model, 1e14, values).kept
    assert exact_of_more.fits == "no" and exact_of_more.distinct[0] * 11 > 2**32
    assert pruned_of_more.fits == "yes"
    limit = (2**32 / 11 / 10) ** (1 / 0.6)
    assert estimate.exact_limit(model) == pytest.approx((limit, limit), rel=0.01)
    assert exact.seconds[0] == pytest.approx(1 + 1e-6 * exact.distinct[0], rel=1e-3)


def test_the_report_has_a_column_for_each_corpus():
    values = parameters.read(BENCHES / "scale.toml")
    lines = estimate.report(made_model(), values).splitlines()
    assert lines[0] == "|  | 1.0 TB | 100 TB | Common Crawl, 1.5 PB |"
    assert "| slices of 1 GiB | 932 | 93,133 | 1,396,984 |" in lines
    assert len({line.count("|") for line in lines[: lines.index("")]}) == 1


def test_parameters_are_changed_by_name():
    path = BENCHES / "scale.toml"
    assert parameters.read(path, ["mtbf_hours=inf"]).mtbf_hours == math.inf
    with pytest.raises(ValueError, match="did you mean 'workers'"):
        parameters.read(path, ["worker=3"])
    with pytest.raises(ValueError, match="expected a number"):
        parameters.read(path, ["workers=many"])
    with pytest.raises(ValueError, match="expected a value like"):
        parameters.read(path, ["thresholds=3"])


def small_job(*changes: str) -> scenario.Job:
    recorded = [tasks.Task(stage, 10**8, 1.0) for stage in tasks.STAGES]
    calm = ["speed_spread=0", "straggler_share=0", "mtbf_hours=inf", "starts_per_second=inf"]
    calm += ["store_mb_per_second=inf", "file_open_seconds=0", "workers=10", "slice_mib=[256, 512]"]
    values = parameters.read(BENCHES / "scale.toml", ["simulated_bytes=1e10", *calm, *changes])
    return scenario.Job(values, recorded, [point(h) for h in range(6, -1, -1)], 0)


def test_a_calm_cluster_needs_the_ideal_time():
    job = small_job()
    count = job.count(512)
    assert count.tasks == 19
    assert count.makespan == pytest.approx(2 * 1e10 / 19 / 1e8)
    runs = count.tasks * heaps.Saved.of([point(h) for h in range(6, -1, -1)])(1e10 / 19)
    assert job.reduce(512).median == pytest.approx(2 * runs / 16 / 1e8)
    # 19 runs, at most 4 by each task: 5 groups of 16 partitions, then 16 tasks with 5 runs.
    assert job.reduce(512, fan_in=4).median > job.reduce(512, partitions=160).median


def test_the_simulation_reports_every_table():
    shown = scenario.report(small_job())
    assert "Shortest: counting 256 MiB" in shown
    assert shown.count("| --- |") == 4


# ---------------------------------------------------------------------- the record, the chart


def test_the_record_can_be_read():
    points = heaps.read_points(sorted(RECORD.glob("*-heaps.jsonl"))[-1])
    assert set(points) == set(corpora.NAMES)
    measured = rates.read_rates(sorted(RECORD.glob("*-rates.jsonl"))[-1])
    model = estimate.Model.from_record(points["mixed"], measured)
    assert 0.3 < model.tail.beta < 0.9
    assert "merge loop" in rates.report(measured)
    found = tasks.read_tasks(RECORD.glob("*-tasks.jsonl"))
    assert {task.stage for task in found} == set(tasks.STAGES)


def test_the_chart_has_every_point_and_stays_inside():
    points = {"mixed": [point(h) for h in range(6, -1, -1)], "prose100": [point(3), point(2)]}
    root = ElementTree.fromstring(chart.draw(points, scenario.by_slice(small_job())))
    svg = "{http://www.w3.org/2000/svg}"
    assert len(list(root.iter(f"{svg}circle"))) == 7 + 2 + 2 * 3
    for element in root.iter():
        for axis, limit in (("x", chart.WIDTH), ("y", chart.HEIGHT)):
            assert 0 <= float(element.get(axis, "0")) <= limit
            assert 0 <= float(element.get(f"c{axis}", "0")) <= limit


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
def test_a_job_runs_in_a_process_of_its_own(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("low lower\n<|endoftext|>\nlowest\n")
    job = {"measure": "count", "text": str(text), "scratch": str(tmp_path / "run")}
    command = [sys.executable, str(BENCHES / "scale.py"), "run-job", json.dumps(job)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    found = json.loads(done.stdout)
    assert found["answer"] == 4  # "low", " lower", "\n", "lowest"
    assert found["peak_rss_bytes"] >= found["resident_before"] > 0
