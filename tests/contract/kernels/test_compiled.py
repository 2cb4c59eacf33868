"""What is compiled is kept on disk, and is that of the sources as they are."""

import importlib.util
import sys

import pytest

from kernels.gpu import _compiler

PLAIN = "from numba.extending import overload\n\ndef inner(x):\n    pass\n\ninner.__module__ = 'kernels.inner'\n"
PLAIN += "@overload(inner)\ndef _compiled(x):\n    return lambda x: x + {}\n"
INNER = "from kernels.compiled import exact\n\n@exact\ndef inner(x):\n    return x + {}\n"
OUTER = "from inner import inner\nfrom kernels.compiled import exact\n\n@exact\ndef outer(x):\n    return inner(x)\n"

DEVICE = "from kernels.gpu import cuda\n\n@cuda.jit(device=True)\ndef inner(x):\n    return x + {}\n"
KERNEL = "from inner import inner\nfrom kernels.gpu import cuda\n\n@cuda.jit\ndef outer(x):\n    x[0] = inner(x[0])\n"


def outer(folder, monkeypatch):
    """Return the compiled function of a module as a new process would import it."""
    for name in ("inner", "outer"):
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    return module.outer


@pytest.mark.parametrize("source", [INNER, PLAIN], ids=["compiled", "overloaded"])
def test_a_function_is_compiled_again_when_one_that_it_calls_has_changed_in_another_file(tmp_path, monkeypatch, source):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # sources may change twice within the second that .pyc tell
    (tmp_path / "outer.py").write_text(OUTER)
    for added in (1, 2):
        (tmp_path / "inner.py").write_text(source.format(added))
        assert outer(tmp_path, monkeypatch)(10) == 10 + added
    again = outer(tmp_path, monkeypatch)
    assert again(10) == 12
    assert sum(again.stats.cache_hits.values()) == 1  # nothing has changed


def test_a_kernel_for_gpus_is_compiled_again_when_a_function_that_it_calls_has_changed(tmp_path, monkeypatch):
    pytest.importorskip("numba.cuda")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "outer.py").write_text(KERNEL)
    stamps = []
    for added in (1, 1, 2):
        (tmp_path / "inner.py").write_text(DEVICE.format(added))
        kept = _compiler().ready(outer(tmp_path, monkeypatch))._cache._cache_file
        stamps.append(kept._source_stamp)
    assert stamps[0] == stamps[1] != stamps[2]
