# The workbench on port 8501, as a user of its own, with nothing to write but two volumes and /tmp.
#
#   docker build -t lockstep .                        torch for the CPU
#   docker build -t lockstep --build-arg CUDA=1 .     torch with CUDA; then docker run --gpus all
#   docker run --init --read-only --tmpfs /tmp -v data:/data -v kernels:/cache -p 8501:8501 lockstep
#   docker run --rm lockstep run easgd --workers 8    a command instead
FROM debian:bookworm-slim AS system
# Debian's security updates are wanted here, and not one version for ever
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends --yes python3 python3-venv bubblewrap \
    && rm -rf /var/lib/apt/lists/*

FROM system AS build
ARG CUDA=
WORKDIR /source
RUN python3 -m venv /opt/lockstep
ENV PATH=/opt/lockstep/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY pyproject.toml requirements.lock ./
# torch is pinned in pyproject.toml
# hadolint ignore=DL3013
RUN torch="$(sed -n 's/^ *"\(torch==[^"]*\)".*/\1/p' pyproject.toml)" \
    && if [ -n "$CUDA" ]; then pip install "$torch"; \
       else pip install "$torch" --index-url https://download.pytorch.org/whl/cpu; fi \
    && pip install --require-hashes -r requirements.lock
COPY . .
RUN pip install --no-deps .

FROM system
COPY --from=build /opt/lockstep /opt/lockstep
RUN useradd --uid 1000 --no-create-home --home-dir /tmp lockstep \
    && mkdir /data /cache && chown lockstep:lockstep /data /cache
ENV PATH=/opt/lockstep/bin:$PATH PYTHONDONTWRITEBYTECODE=1 \
    LOCKSTEP_RUNS=/data/runs LOCKSTEP_TABLES=/data/tables NUMBA_CACHE_DIR=/cache \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 STREAMLIT_SERVER_PORT=8501 STREAMLIT_SERVER_HEADLESS=true \
    STREAMLIT_BROWSER_SERVER_ADDRESS=localhost
USER 1000
WORKDIR /tmp
# Kernels for this processor; a new named volume begins with them. On another one they are compiled at first use.
RUN ["python", "-m", "experiments.jobs.precompile"]
VOLUME /data /cache
EXPOSE 8501
HEALTHCHECK --interval=15s --start-period=60s --start-interval=1s \
    CMD ["python", "-c", "import os, urllib.request as r; base = os.environ.get('STREAMLIT_SERVER_BASE_URL_PATH', '').strip('/'); r.urlopen('/'.join(filter(None, ['http://127.0.0.1:8501', base, '_stcore/health'])), timeout=5)"]
ENTRYPOINT ["lockstep"]
