"""Tests of `elfmem_sim.progress`: lines without a terminal, a bar on one, nothing when quiet."""

import io
import sys
from types import SimpleNamespace

import pytest

from elfmem_sim import progress
from elfmem_sim.progress import ProgressReport


class Clock:
    """A clock that stands still until it is moved."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


class Terminal(io.StringIO):
    """Standard error on a terminal."""

    def isatty(self) -> bool:
        return True


def lines_of(capsys) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_the_first_line_says_what_is_planned(clock, capsys):
    with ProgressReport("runs") as report:
        report.update(0, 120)
    assert lines_of(capsys) == ["runs: 0 of 120 runs"]


def test_the_next_line_has_an_estimate_from_the_rate_so_far(clock, capsys):
    with ProgressReport("runs") as report:
        report.update(0, 100)
        clock.now += 20
        report.update(25, 100)
    assert lines_of(capsys)[1:] == ["runs: 25 of 100 runs, about 60 s left"]


def test_the_estimate_leaves_out_what_was_done_before(clock, capsys):
    with ProgressReport("runs") as report:
        report.update(60, 100)
        clock.now += 10
        report.update(70, 100)
    assert lines_of(capsys) == ["runs: 60 of 100 runs", "runs: 70 of 100 runs, about 30 s left"]


def test_the_estimate_leaves_out_the_time_before_the_first_update(clock, capsys):
    with ProgressReport("runs") as report:
        clock.now += 500
        report.update(0, 100)
        clock.now += 10
        report.update(50, 100)
    assert lines_of(capsys)[1:] == ["runs: 50 of 100 runs, about 10 s left"]


def test_lines_come_at_most_every_ten_seconds(clock, capsys):
    with ProgressReport("runs") as report:
        report.update(0, 100)
        for done in range(1, 31):
            clock.now += 1
            report.update(done, 100)
    assert [line.split()[1] for line in lines_of(capsys)] == ["0", "10", "20", "30"]


def test_the_last_line_always_comes(clock, capsys):
    with ProgressReport("runs") as report:
        report.update(0, 100)
        clock.now += 2
        report.update(100, 100)
    assert lines_of(capsys)[-1] == "runs: 100 of 100 runs, about 0 s left"


def test_a_study_that_is_already_finished_is_one_line(clock, capsys):
    with ProgressReport("runs") as report:
        report.update(100, 100)
    assert lines_of(capsys) == ["runs: 100 of 100 runs"]


def test_a_clock_that_stands_still_is_no_error(clock, capsys):
    with ProgressReport("runs") as report:
        report.update(0, 2)
        report.update(2, 2)
    assert len(lines_of(capsys)) == 2


def test_quiet_says_nothing(clock, capsys):
    with ProgressReport("runs", quiet=True) as report:
        report.update(0, 100)
        clock.now += 60
        report.update(100, 100)
    assert lines_of(capsys) == []


def test_quiet_says_nothing_on_a_terminal_either(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressReport("runs", quiet=True) as report:
        report.update(0, 100)
    assert terminal.getvalue() == ""


def test_a_terminal_gets_a_bar(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressReport("headline") as report:
        report.update(0, 100)
        report.update(100, 100)
    assert "headline" in terminal.getvalue()
    assert "100%" in terminal.getvalue()
    assert "of 100 runs" not in terminal.getvalue()


def test_the_bar_is_taken_away_when_a_study_fails(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    report = ProgressReport("headline")

    def fail():
        with report:
            report.update(1, 100)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert not report._bar.live.is_started
