# docker build -t cdta .                          then  docker run -v cdta:/data cdta cdta run
# docker build -t cdta-tests --target tests .     then  docker run cdta-tests pytest
FROM python:3.13-slim AS base
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends stockfish \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 cdta \
    && install --directory --owner cdta /data
ENV CDTA_HOME=/data \
    MPLCONFIGDIR=/tmp/matplotlib \
    PATH="/usr/games:$PATH"
VOLUME /data

FROM base AS tests
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends chromium \
    && rm -rf /var/lib/apt/lists/*
COPY --chown=cdta . /project
WORKDIR /project
RUN pip install --no-cache-dir '/project[test]'
USER 1000
CMD ["pytest"]

FROM base AS build
COPY . /project
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /project

FROM base
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir "$(echo /wheels/*.whl)[anthropic,google,openai]"
USER 1000
WORKDIR /data
CMD ["cdta", "run"]
