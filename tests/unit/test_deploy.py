"""What deploys Lockstep elsewhere: files that no test here can run, held to what they name."""

import fnmatch
import json
import re
import shlex
import tomllib

from app import jupyter
from tests.sources import MODULES, ROOMS, ROOT
from tests.unit.test_package import DOCUMENTS

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
PIN = re.compile(r"sed -n '(s/.+?/p)' pyproject.toml")


def test_what_the_wheel_is_built_of_reaches_the_image_and_nothing_of_tests():
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert lines[1] == "*"
    kept = [line[1:] for line in lines if line.startswith("!")]
    needed = [
        *ROOMS,
        *(f"{module}.py" for module in MODULES),
        *DOCUMENTS,
        "README.md",
        "pyproject.toml",
        "requirements.lock",
    ]
    assert [name for name in needed if not any(fnmatch.fnmatch(name, pattern) for pattern in kept)] == []
    assert not any(fnmatch.fnmatch("tests", pattern) for pattern in kept)


def test_torch_is_installed_in_the_version_that_pyproject_pins():
    (pinned,) = (one for one in project()["dependencies"] if one.startswith("torch"))
    for text in (DOCKERFILE, (ROOT / "binder" / "postBuild").read_text("utf-8")):
        pattern, _, _ = PIN.search(text)[1].removeprefix("s/").rpartition("/\\1/p")
        plain = pattern.replace("\\(", "(").replace("\\)", ")")  # as sed writes groups
        lines = (ROOT / "pyproject.toml").read_text("utf-8").splitlines()
        assert [found[1] for line in lines if (found := re.match(plain, line))] == [pinned]


def test_a_container_can_write_where_the_program_keeps_things_and_nowhere_else():
    (volumes,) = re.findall(r"^VOLUME (.+)$", DOCKERFILE, re.MULTILINE)
    kept = re.findall(r"(?:LOCKSTEP_RUNS|LOCKSTEP_TABLES|NUMBA_CACHE_DIR)=(\S+)", DOCKERFILE)
    assert len(kept) == 3 and all(any(one.startswith(place) for place in volumes.split()) for one in kept)
    assert re.search(r"^USER (?!0|root)", DOCKERFILE, re.MULTILINE)
    compose = (ROOT / "compose.yaml").read_text("utf-8")
    assert all(f":{place}" in compose for place in volumes.split()) and "read_only: true" in compose


def test_compose_mounts_a_configuration_that_passes_on_to_the_workbench():
    compose = (ROOT / "compose.yaml").read_text("utf-8")
    (mounted,) = re.findall(r"\./(\S+?):/etc/nginx", compose)
    nginx = (ROOT / mounted).read_text("utf-8")
    (base,) = re.findall(r"STREAMLIT_SERVER_BASE_URL_PATH: (\w+)", compose)
    assert f"location /{base}/ {{" in nginx and "proxy_pass http://workbench:8501;" in nginx
    assert "\n  workbench:\n" in compose and "STREAMLIT_SERVER_PORT=8501" in DOCKERFILE


def test_behind_nginx_a_reader_is_where_nginx_sees_it_and_not_where_it_says_it_is():
    nginx = (ROOT / "deploy" / "nginx.conf").read_text("utf-8")
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in nginx
    workbench = (ROOT / "compose.yaml").read_text("utf-8").partition("\n  nginx:\n")[0]
    assert 'FORWARDED_ALLOW_IPS: "*"' in workbench and "ports:" not in workbench  # only nginx reaches it


def test_nginx_shows_no_counts_of_the_server_and_tells_browsers_what_not_to_guess_or_pass_on():
    nginx = (ROOT / "deploy" / "nginx.conf").read_text("utf-8")
    assert re.search(r"location ~ \^/lab/_stcore/\(metrics\|agent\) \{ return 403; \}", nginx)
    assert {"X-Content-Type-Options nosniff", "Referrer-Policy same-origin"} == {
        *re.findall(r"^    add_header (.+?) always;", nginx, re.MULTILINE)
    }


def test_a_codespace_sets_up_and_starts_as_a_clone_does():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    for command in (container["postCreateCommand"], container["postAttachCommand"]):
        assert shlex.split(command)[:2] == ["python3", "start.py"] and (ROOT / "start.py").is_file()
    assert container["forwardPorts"] == [8501] and "--server.port 8501" in container["postAttachCommand"]


def test_jupyter_finds_the_workbench_below_its_own_address():
    points = project()["entry-points"]["jupyter_serverproxy_servers"]
    assert points == {"lockstep": f"{jupyter.__name__}:{jupyter.server.__name__}"}
    told = jupyter.server()
    words = dict(zip(told["command"][3::2], told["command"][4::2], strict=True))
    assert words["--server.baseUrlPath"] == "{base_url}lockstep" and told["absolute_url"]
    assert words["--server.address"] == "127.0.0.1"


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
