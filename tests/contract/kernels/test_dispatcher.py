"""The dispatcher: nothing is loaded before it is called, and whoever meters is told the price."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import threading

import numpy as np
import pytest

import kernels
from kernels.meter import METER


class Ledger:
    """A meter that writes everything down."""

    def __init__(self):
        self.rows: list[tuple] = []

    def charge(self, kernel: str, flops: float, nbytes: float) -> None:
        self.rows.append((kernel, flops, nbytes))


def in_a_new_process(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_kernels_imports_no_compiler():
    loaded = in_a_new_process(
        "import kernels, sys; print([m for m in ('numba', 'torch', 'scipy') if m in sys.modules])"
    )
    assert loaded == "[]"


def test_a_kernel_is_loaded_by_its_first_call_and_no_other_kernel_with_it():
    loaded = in_a_new_process(
        "import kernels, sys, numpy as np; kernels.sgd(np.ones(3), np.ones(3), 0.1);"
        "print([m for m in sys.modules if m.startswith('kernels.updates.')], 'torch' in sys.modules)"
    )
    assert loaded == "['kernels.updates.sgd'] False"


def test_nobody_is_told_the_price_by_default():
    ledger = Ledger()
    assert METER.get() is None
    with kernels.meter_kernels(ledger):
        pass
    kernels.scale(np.ones(3), 2.0)
    assert ledger.rows == []


def test_the_price_is_reported_to_the_meter_of_the_context():
    ledger = Ledger()
    with kernels.meter_kernels(ledger):
        kernels.sgd(np.ones(100, np.float32), np.ones(100, np.float32), 0.1)
        kernels.momentum(*(np.ones(10) for _ in range(3)), 0.1, 0.9)
    assert ledger.rows == [("sgd", 200, 1200), ("momentum", 40, 400)]


def test_a_price_that_depends_on_shapes_sees_all_arguments():
    ledger = Ledger()
    with kernels.meter_kernels(ledger):
        kernels.mean(np.ones(100, np.float32), np.ones((8, 100), np.float32))
    assert ledger.rows == [("mean", 800, 9 * 100 * 4)]


def test_a_price_can_be_asked_without_the_work():
    w = np.ones(100)
    assert kernels.sgd.price(w, w, 0.1) == (200, 300)
    assert (w == 1).all()


def test_an_inner_meter_replaces_the_outer_one_and_none_silences_it():
    outer, inner, x = Ledger(), Ledger(), np.ones(3)
    with kernels.meter_kernels(outer):
        with kernels.meter_kernels(inner):
            kernels.scale(x, 2.0)
        with kernels.meter_kernels(None):
            kernels.scale(x, 2.0)
        kernels.scale(x, 2.0)
    assert (len(outer.rows), len(inner.rows)) == (1, 1)


def test_a_meter_hears_nothing_of_another_thread():
    ledger = Ledger()
    with kernels.meter_kernels(ledger):
        other = threading.Thread(target=lambda: kernels.scale(np.ones(3), 2.0))
        other.start()
        other.join()
    assert ledger.rows == []


def test_a_meter_is_taken_off_when_the_block_raises():
    with pytest.raises(KeyError), kernels.meter_kernels(Ledger()):
        raise KeyError
    assert METER.get() is None


def test_an_unknown_kernel_is_an_attribute_error():
    with pytest.raises(AttributeError, match="momentun"):
        _ = kernels.momentun


def test_every_kernel_has_its_words():
    for family, names in kernels.FAMILIES.items():
        for name in names:
            module = getattr(kernels, name).module
            assert module.__name__ == f"kernels.{family}.{name}"
            assert callable(module.reference) and callable(module.cpu) and callable(module.gpu)
            assert hasattr(module, "price") != (hasattr(module, "FLOPS") and hasattr(module, "WORDS"))
            assert (module.__doc__ or "").strip(), f"{name} says nothing about itself"


def test_a_price_counts_the_operations_of_the_formula():
    elsewhere = {"correct", "gelu_forward", "relu_backward", "rmsprop", "tanh_forward"}  # two forms, exp, if, inside 0
    elsewhere |= {"sign_sgd"}  # branches, of which an element takes one
    wrong = []
    for names in kernels.FAMILIES.values():
        for module in (getattr(kernels, name).module for name in names if name not in elsewhere):
            if hasattr(module, "FLOPS") and hasattr(module, "element"):
                nodes = list(ast.walk(ast.parse(inspect.getsource(module))))
                formula = next(n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == "element")
                counted = sum(
                    isinstance(n, ast.BinOp) or (isinstance(n, ast.Call) and ast.unparse(n.func) == "sqrt")
                    for n in ast.walk(formula)
                )
                if counted != module.FLOPS or f"{counted} FLOP" not in module.__doc__:
                    wrong.append((module.__name__, module.FLOPS, counted))
    assert not wrong


def test_no_kernel_lets_the_compiler_assume_that_there_are_no_nans():
    for names in kernels.FAMILIES.values():
        for name in names:
            for compiled in vars(getattr(kernels, name).module).values():
                flags = getattr(compiled, "targetoptions", {}).get("fastmath") or set()
                assert flags is not True and not {"fast", "nnan", "ninf"} & set(flags), f"{name} hides NaN"


def test_kernels_take_integers_and_numpy_numbers_as_scalars():
    w = np.ones(3, np.float32)
    kernels.scale(w, 2)
    kernels.scale(w, np.float64(2.0))
    kernels.scale(w, np.float32(2.0))
    assert w.dtype == np.float32 and (w == 8).all()
