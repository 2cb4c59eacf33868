"""The workbench in JupyterHub, JupyterLab and Binder: a tile in the launcher, and a page under `/lockstep/`.

If jupyter-server-proxy is installed, too, it finds the workbench, starts it for each user, and forwards requests and
WebSockets.
"""

import sys
from pathlib import Path
from typing import Any


def server() -> dict[str, Any]:
    """Return jupyter-server-proxy's description of how to start the workbench; the proxy fills in the braces."""
    options = {"address": "127.0.0.1", "port": "{port}", "headless": "true", "baseUrlPath": "{base_url}lockstep"}
    return {
        "command": [sys.executable, "-m", "app", *(w for k, v in options.items() for w in (f"--server.{k}", v))],
        "absolute_url": True,  # requests keep their path, which includes the base path
        "timeout": 120,  # s
        "launcher_entry": {"title": "Lockstep", "icon_path": str(Path(__file__).with_name("logo.svg"))},
    }
