# One image for the dealer and every party: the core alone, with locked and hashed dependencies. No torch, no pip,
# no root; nothing in it needs a shell. docs/containers.md says how to name the base by its digest.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
COPY requirements/build.txt requirements/core.txt /requirements/
# What builds the wheel stays in this stage.
RUN python -m venv /builder && python -m venv --without-pip /venv && \
    /builder/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /requirements/build.txt && \
    /builder/bin/pip --python /venv/bin/python install --no-cache-dir --disable-pip-version-check \
      --require-hashes -r /requirements/core.txt
COPY pyproject.toml README.md /src/
COPY protos /src/protos
COPY vflens /src/vflens
COPY attacks /src/attacks
COPY defenses /src/defenses
COPY clients /src/clients
COPY coordinator /src/coordinator
COPY services /src/services
COPY examples /src/examples
RUN /builder/bin/pip wheel --no-deps --no-index --no-build-isolation --wheel-dir /wheel /src && \
    /builder/bin/pip --python /venv/bin/python install --no-deps --no-index /wheel/vflens-*.whl

FROM ${BASE}
# One numeric thread per process: sums have one order, and a machine's cores serve several parties.
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
RUN useradd --create-home --uid 10001 vflens
COPY --from=build /venv /venv
WORKDIR /vflens
COPY examples examples
# A named volume takes over owner and mode of the folder that it is first mounted on; others must not read a party's.
RUN mkdir -p parties/coordinator parties/active parties/passive \
      parties/server parties/client-1 parties/client-2 parties/client-3 && \
    chmod 700 parties/* && chown -R vflens:vflens parties

USER vflens
CMD ["vflens", "--help"]
