# One image for the dealer and every party: the core alone, no torch, no root.
FROM python:3.11-slim

# One numeric thread per process: sums have one order, and a machine's cores serve several parties.
ENV PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

RUN useradd --create-home --uid 10001 vflens

COPY pyproject.toml constraints.txt README.md /src/
COPY protos /src/protos
COPY vflens /src/vflens
COPY attacks /src/attacks
COPY defenses /src/defenses
COPY clients /src/clients
COPY coordinator /src/coordinator
COPY services /src/services
RUN pip install --no-cache-dir --disable-pip-version-check -c /src/constraints.txt /src && rm -rf /src

WORKDIR /vflens
COPY examples examples
# A named volume takes over owner and mode of the folder that it is first mounted on; others must not read a party's.
RUN mkdir -p parties/coordinator parties/active parties/passive && chmod 700 parties/* && chown -R vflens:vflens parties

USER vflens
CMD ["vflens", "--help"]
