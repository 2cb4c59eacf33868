"""Read the text of a script without torch, so that its settings can be checked before torch is imported."""

from importlib.util import decode_source
from pathlib import Path


def read_source(path: str | Path) -> str:
    """Return the text of a Python file, in UTF-8 or the encoding that it declares (PEP 263).

    Raise ValueError if the file cannot be read or is not such text.
    """
    path = Path(path)
    try:
        return decode_source(path.read_bytes())
    except FileNotFoundError:
        raise ValueError(f"there is no script {path}; check its name.") from None
    except OSError as error:
        if path.is_dir():
            raise ValueError(f"{path} is a folder; give the path of a Python script.") from None
        raise ValueError(f"the script {path} cannot be read ({error.strerror}); check its permissions.") from None
    except (UnicodeDecodeError, SyntaxError):
        raise ValueError(
            f"{path} is not a text file in UTF-8, and its first lines name no other encoding that fits; give a Python "
            "script."
        ) from None
