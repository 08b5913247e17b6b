"""The two ways the package says no."""


class UserError(Exception):
    """Something the user gave cannot be used.

    Args:
        value: What was given, as the user wrote it.
        expected: What would have been accepted.
        remedy: What to do now.
        where: File, key or option that holds the value, if there is one.
    """

    def __init__(self, value: object, expected: str, remedy: str, where: str = "") -> None:
        self.value = value
        self.expected = expected
        self.remedy = remedy
        self.where = where
        place = f"{where}: " if where else ""
        super().__init__(f"{place}got {value!r}; expected {expected}. {remedy}")

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the way back from a worker process."""
        return (UserError, (self.value, self.expected, self.remedy, self.where))


class InvariantError(Exception):
    """elfmem broke one of ADR 0004's promises during a run.

    Args:
        promise: The promise, in the ADR's terms.
        scenario: Scenario name.
        arm: Arm name.
        seed: Seed of the run.
        day: Day on which it happened.
        detail: What was seen.
    """

    def __init__(
        self, promise: str, *, scenario: str, arm: str, seed: int, day: int, detail: str
    ) -> None:
        self.promise = promise
        super().__init__(
            f"ADR 0004 promises that {promise}; broken in {scenario}, arm {arm}, seed {seed}, "
            f"day {day}: {detail}. Replay it: elfmem-sim replay {scenario} --arm {arm} "
            f"--seed {seed}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the way back from a worker process."""
        return (_rebuild, (self.promise, str(self)))


def _rebuild(promise: str, message: str) -> InvariantError:
    error = InvariantError.__new__(InvariantError)
    Exception.__init__(error, message)
    error.promise = promise
    return error
