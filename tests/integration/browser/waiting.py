"""Waits for conditions, with patience for sanitized builds on a busy machine."""
import time

PATIENCE = 120  # seconds


def wait_for(what, condition):
    """Waits until `condition` returns a true value and returns it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {PATIENCE} s: {what}")
