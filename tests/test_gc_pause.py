"""The garbage collector is off while somebody makes many objects, and as before afterwards."""

import gc

import pytest
from iolab.base.gc_pause import gc_paused


def test_it_is_off_until_the_last_one_is_done() -> None:
    assert gc.isenabled()
    with gc_paused():
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_on_again_after_an_error_and_stays_off_where_it_was_off() -> None:
    with pytest.raises(ValueError, match="made"), gc_paused():
        raise ValueError("made too much")
    assert gc.isenabled()
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
